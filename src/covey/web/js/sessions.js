// The sessions of the workspace, with what matters of each at a glance, and who is here.

import { fill, glyph, h } from './dom.js';
import { addressOf, ago, oneLine } from './text.js';

/** @typedef {import('./app.js').App} App */

const SHOWN = 60;
/** @type {Record<string, [string, string]>} */
const MARKS = {
  needs: ['ask', 'needs you'], busy: ['busy', 'running'], failed: ['close', 'failed'], unread: ['dot', 'new'], quiet: ['', ''],
};

const KINDS = /** @type {Record<string, string>} */ ({ tui: 'terminal', web: 'browser', run: 'command', acp: 'editor', api: 'program' });

/** @param {import('./types.js').PresentClient} client */
export const clientName = (client) => `${oneLine(client.name ?? '') || 'somebody'} (${KINDS[client.kind ?? 'api'] ?? 'client'})`;

export class SessionsPane {
  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.app = app;
    this.root = root;
    this.list = h('ul.session-list', { aria: { label: 'Sessions' } });
    this.here = h('p.here');
    this.most = SHOWN;
    root.append(this.list, this.here);
    this.drawn = '';
  }

  /** Top-level sessions, the last changed first. */
  get rows() {
    const { view } = this.app;
    return [...view.sessions.records.values()].filter((record) => record.session && !record.session.parent_session_id && !record.session.archived_at)
      .sort((a, b) => /** @type {any} */ (b.session).updated_at - /** @type {any} */ (a.session).updated_at || (/** @type {any} */ (b.session).id > /** @type {any} */ (a.session).id ? 1 : -1));
  }

  /** @param {import('./records.js').SessionRecord} record */
  markOf(record) {
    const id = record.session?.id ?? '';
    const children = [...this.app.view.sessions.records.values()].filter((each) => each.session?.parent_session_id === id);
    if ([id, ...children.map((each) => each.session?.id ?? '')].some((each) => this.app.view.asks.waitsIn(each))) return 'needs';
    if (record.isBusy) return 'busy';
    if (record.hasFailed) return 'failed';
    return record.isUnread ? 'unread' : 'quiet';
  }

  draw() {
    const rows = this.rows;
    const { current } = this.app.view;
    const shown = rows.slice(0, this.most).map((record) => {
      const session = /** @type {any} */ (record.session);
      return { id: session.id, title: this.app.titleOf(session.id), mark: this.markOf(record), at: ago(session.updated_at), isCurrent: session.id === current };
    });
    const key = JSON.stringify([shown, rows.length, this.app.view.sessions.isLoaded]);
    if (key !== this.drawn) {
      this.drawn = key;
      fill(this.list, shown.map((row) => this.#row(row)), rows.length > this.most && h('li', null, h('button.more', { onclick: () => { this.most += SHOWN; this.draw(); } }, `${rows.length - this.most} more`)),
        !rows.length && this.app.view.sessions.isLoaded && h('li.none', null, 'No sessions yet.'));
    }
    this.#drawHere();
  }

  /** @param {any} row */
  #row({ id, title, mark, at, isCurrent }) {
    const [sign, says] = MARKS[mark] ?? ['', ''];
    return h('li', null, h(`a.session.${mark}`, { href: addressOf(this.app.route.workspace, id), aria: { current: isCurrent ? 'page' : undefined }, data: { session: id } },
      glyph(sign), h('span.session-title', null, title), h('small', null, says || at)));
  }

  #drawHere() {
    const others = [...this.app.view.clients.values()].filter((client) => client.client_id !== this.app.api.clientId);
    const names = others.map((client) => `${clientName(client)}${client.session_id === this.app.view.current && client.session_id ? ' is here' : ''}`);
    const text = names.length ? `With you: ${names.join(', ')}` : '';
    if (this.here.textContent !== text) this.here.textContent = text;
  }

  /** The next or the one before. @param {number} step */
  move(step) {
    const rows = this.rows.map((record) => /** @type {any} */ (record.session).id);
    const at = rows.indexOf(this.app.view.current);
    const next = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next) this.app.openSession(next);
  }
}
