// What the run does now, what a cancel covered, and a banner exactly while events do not arrive.

import { byId, fill, glyph, h, later } from './dom.js';
import { announce } from './notify.js';
import { counted, lasted, oneLine } from './text.js';

/** @typedef {import('./app.js').App} App */

const QUIET_S = 2;
/** A break that is shorter shows nothing. */
const SAYS = /** @type {Record<string, string>} */ ({ model: 'Waiting for the model', retry: 'Waits before it tries again', store: 'Waits for the disk of the server' });

export class StatusLine {
  /** @param {App} app @param {HTMLElement} root @param {HTMLElement} banner */
  constructor(app, root, banner) {
    this.app = app;
    this.root = root;
    this.banner = banner;
    this.page = new URL('../', import.meta.url).pathname.split('/').at(-2) ?? '';
    this.isUpdated = false;
    this.refusal = '';
    this.wasBusy = false;
    setInterval(() => { if (this.app.isBusy || this.app.view.link.state !== 'connected') later('status', () => this.draw()); }, 1000);
  }

  /** The page goes on after an upgrade, and says so. */
  async connected() {
    try {
      const { page } = await this.app.api.version();
      this.isUpdated = Boolean(page && page !== this.page);
    } catch { /* it is asked again with the next connection */ }
    later('status', () => this.draw());
  }

  /** The workspace cannot be opened: nothing will change that by itself. @param {string} why */
  refused(why) {
    this.refusal = why;
    this.draw();
  }

  draw() {
    this.#drawBanner();
    const run = this.#active();
    const { isBusy } = this.app;
    const stop = byId('stop');
    const cancel = [...this.app.view.outbox.cancels.values()].find((each) => each.session_id === this.app.view.current);
    stop.classList.toggle('stopping', Boolean(cancel));
    if (this.wasBusy && !isBusy) this.#ended();
    this.wasBusy = isBusy;
    if (!run && !cancel) { fill(this.root, this.#todo()); return; }
    const seconds = run?.run.started_at ? Date.now() / 1000 - run.run.started_at : 0;
    const isAsking = this.app.view.asks.waitsIn(this.app.view.current);
    fill(this.root, glyph(!cancel && isAsking ? 'ask' : 'busy'), h('span', null, cancel ? this.#stopping(cancel) : isAsking ? 'Waits for your answer' : this.#doing(run)),
      seconds >= 1 && h('small', null, lasted(Math.floor(seconds))));
  }

  #active() { return [...(this.app.record?.runs.values() ?? [])].find((each) => each.run.state === 'active'); }

  /** @param {any} record */
  #doing(record) {
    if (record.key_refused) return 'The provider refused the key';
    if (record.retry) {
      const left = Math.max(0, Math.ceil((record.retry.retry_at ?? 0) - Date.now() / 1000));
      return `${oneLine(record.retry.reason ?? 'The model failed')}. Tries again${left ? ` in ${left} s` : ''} (attempt ${record.retry.attempt ?? 2})`;
    }
    const on = record.run.waiting_on ?? '';
    return on.startsWith('tool:') ? `Running ${oneLine(on.slice(5))}` : SAYS[on] ?? 'Working';
  }

  /** @param {any} cancel */
  #stopping(cancel) { return cancel.covered ? `Stopping ${counted(cancel.covered.size, 'run')}…` : 'Stopping…'; }

  #ended() { announce(this.app.record?.hasFailed ? 'The run failed' : 'Answer complete'); }

  #todo() {
    const todos = this.app.record?.session?.todos ?? [];
    const done = todos.filter((/** @type {any} */ each) => each.status === 'completed').length;
    return todos.length && done < todos.length ? h('small', null, `${done} of ${counted(todos.length, 'item')} of the plan done`) : null;
  }

  #drawBanner() {
    const { link } = this.app.view;
    const away = Date.now() / 1000 - link.since;
    const isAway = link.state !== 'connected' && away >= QUIET_S;
    const text = this.refusal ? `This workspace cannot be opened: ${oneLine(this.refusal)}` : isAway ? 'No connection to the server. Trying again…'
      : link.gap ? 'Some events are gone: loading what is there now…' : '';
    if (!isAway && link.state !== 'connected') setTimeout(() => later('status', () => this.draw()), QUIET_S * 1000 - away * 1000 + 20);
    this.banner.hidden = !text && !this.isUpdated;
    this.banner.dataset.kind = text ? (isAway || this.refusal ? 'away' : 'gap') : 'updated';
    const key = text || (this.isUpdated ? 'updated' : '');
    if (this.banner.dataset.text === key) return;
    this.banner.dataset.text = key;
    if (this.refusal) fill(this.banner, text, ' ', h('a', { href: '#/home' }, 'Choose another'));
    else if (text) fill(this.banner, glyph('busy'), text);
    else if (this.isUpdated) fill(this.banner, 'Covey was updated. ', h('button', { onclick: () => location.reload() }, 'Reload'));
  }
}
