// What reaches a person who does not look: the title, a voice for screen readers, notifications if they were asked for.

import { byId } from './dom.js';
import { keep, kept } from './store.js';
import { oneLine } from './text.js';

/** Say something to a screen reader, never word by word. @param {string} text */
export function announce(text) {
  const region = byId('announcer');
  region.textContent = '';
  requestAnimationFrame(() => { region.textContent = text; });
}

export class Notifier {
  /** @param {import('./app.js').App} app */
  constructor(app) {
    this.app = app;
    this.isAnswering = false;
  }

  get isPossible() { return 'Notification' in globalThis && globalThis.isSecureContext; }
  get isOn() { return this.isPossible && kept('notify') === 'yes' && Notification.permission === 'granted'; }

  /** Only ever after a click. */
  async toggle() {
    if (!this.isPossible) { this.app.toast('Notifications need https, or this machine itself: the browser allows none here.'); return; }
    if (this.isOn) { keep('notify', ''); this.app.toast('Notifications are off.'); return; }
    const isAllowed = (await Notification.requestPermission()) === 'granted';
    keep('notify', isAllowed ? 'yes' : '');
    this.app.toast(isAllowed ? 'You are told when a run ends or needs you, while this tab is hidden.' : 'The browser does not allow notifications for this page.');
  }

  /** @param {string} type @param {any} value */
  take(type, value) {
    if (type === 'permission_request') this.#tell(`Needs your permission: ${oneLine(value.tool_name)}`, value.session_id);
    else if (type === 'question_batch_request') this.#tell('The agent asks you something', value.session_id);
    else if (type === 'run_complete' && !value.folded_into && !value.cancelled) this.#tell(value.error ? 'A run failed' : 'A run has ended', value.session_id);
    else if (type === 'run' && value.state === 'active' && value.session_id === this.app.view.current && !this.isAnswering) { this.isAnswering = true; announce('Answering'); }
    if (type === 'run_complete') this.isAnswering = false;
  }

  /** @param {string} text @param {string} sessionId */
  #tell(text, sessionId) {
    if (sessionId === this.app.view.current && !text.startsWith('A run')) announce(text);
    if (!this.isOn || !document.hidden) return;
    const notice = new Notification(this.app.titleOf(sessionId), { body: text, tag: `covey ${sessionId}` });
    notice.onclick = () => { globalThis.focus(); this.app.openSession(sessionId); notice.close(); };
  }

  drawTitle() {
    const { view } = this.app;
    const waiting = view.asks.open.size;
    const unread = [...view.sessions.records.values()].filter((record) => record.isUnread && record.session).length;
    const mark = waiting ? `(${waiting} !) ` : unread ? `(${unread}) ` : '';
    const title = `${mark}${view.current ? this.app.titleOf(view.current) : 'Covey'}${this.app.isBusy ? ' …' : ''}`;
    if (document.title !== title) document.title = title;
  }
}
