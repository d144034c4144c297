// The messages of a session: a window of them in the document, followed or read.

import { partView } from './cards.js';
import { afterEachFrame, glyph, h, later } from './dom.js';
import { finishOf } from './growth.js';
import { ago } from './text.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./types.js').Message} Message */

const AT_FIRST = 60;
const MORE = 40;
const MOST = 300;
const NEAR_TOP = 400;
const AT_BOTTOM = 24;

/** One message in the document. */
class MessageNode {
  /** @param {App} app @param {Message} message */
  constructor(app, message) {
    this.app = app;
    this.parts = h('div.parts');
    this.meta = h('div.meta');
    const name = message.role === 'user' ? 'You' : message.role === 'assistant' ? 'Covey' : 'Note';
    this.node = h(`article.message.${message.role}`, { data: { id: message.id }, aria: { label: name } }, this.meta, this.parts);
    /** @type {{type: string, view: any}[]} */
    this.views = [];
    this.update(message);
  }

  /** @param {Message} message */
  update(message) {
    const isFinal = message.role !== 'assistant' || Boolean(finishOf(message));
    this.views.length = Math.min(this.views.length, message.parts.length);
    message.parts.forEach((part, index) => {
      let known = this.views[index];
      if (!known || known.type !== part.type || (part.type === 'tool_call' && known.view.id !== part.data.id)) {
        known = { type: part.type, view: partView(this.app, part, `${message.id}:${index}`) };
        this.views[index] = known;
        const before = this.parts.children[index];
        if (before) before.replaceWith(known.view.node); else this.parts.append(known.view.node);
      }
      known.view.update(part, isFinal || index < message.parts.length - 1);
    });
    while (this.parts.children.length > this.views.length) this.parts.lastChild?.remove();
    if (message.is_summary_message) this.node.classList.add('summary');
    this.node.classList.toggle('growing', !isFinal);
    if (!this.meta.firstChild) this.#drawMeta(message);
  }

  /** @param {Message} message */
  #drawMeta(message) {
    if (message.role === 'assistant') return;
    const time = h('time', { dateTime: new Date(message.created_at * 1000).toISOString(), title: new Date(message.created_at * 1000).toLocaleString('en') }, ago(message.created_at));
    this.meta.append(time);
    if (message.run_id) this.meta.append(h('button.message-menu', { title: 'What can be done with this turn', aria: { label: 'What can be done with this turn', haspopup: 'menu' }, data: { run: message.run_id, message: message.id } }, glyph('more')));
  }
}

export class TranscriptPane {
  /** @param {App} app @param {HTMLElement} scroller @param {HTMLElement} log @param {HTMLElement} latest */
  constructor(app, scroller, log, latest) {
    this.app = app;
    this.scroller = scroller;
    this.log = log;
    this.latest = latest;
    this.older = h('div.older', { hidden: true }, 'Loading earlier messages…');
    this.log.before(this.older);
    /** @type {Map<string, MessageNode>} */
    this.nodes = new Map();
    this.first = 0;
    this.isFollowing = true;
    this.lastTop = 0;
    this.lastHeight = 0;
    this.session = '';
    this.#listen();
    afterEachFrame(() => this.#settle());
  }

  // ── follow, or stay ──

  #listen() {
    const up = () => { if (this.scroller.scrollTop > 0) this.#follow(false); };
    this.scroller.addEventListener('wheel', (event) => { if (event.deltaY < 0) up(); }, { passive: true });
    this.scroller.addEventListener('keydown', (event) => { if (['ArrowUp', 'PageUp', 'Home'].includes(event.key)) up(); });
    this.scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    this.latest.addEventListener('click', () => { this.showEnd(); this.scroller.focus({ preventScroll: true }); });
    new ResizeObserver(() => this.#settle()).observe(this.scroller);
    this.log.addEventListener('toggle', () => this.#settle(), true);
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const isAtBottom = scrollHeight - clientHeight - scrollTop < AT_BOTTOM;
    if (scrollTop < this.lastTop - 1 && !isAtBottom && scrollHeight >= this.lastHeight) this.#follow(false);
    else if (isAtBottom && scrollTop >= this.lastTop) this.#follow(true);
    this.lastTop = scrollTop;
    this.lastHeight = scrollHeight;
    if (scrollTop < NEAR_TOP) later('older', () => this.#older());
  }

  /** @param {boolean} isFollowing */
  #follow(isFollowing) {
    this.isFollowing = isFollowing;
    this.latest.hidden = isFollowing;
  }

  showEnd() {
    this.#follow(true);
    const all = this.app.view.messages.list();
    this.#window(all, Math.max(0, all.length - AT_FIRST));
    this.#settle();
  }

  #settle() {
    if (!this.isFollowing) return;
    const end = this.scroller.scrollHeight - this.scroller.clientHeight;
    if (Math.abs(this.scroller.scrollTop - end) > 1) this.scroller.scrollTop = end;
    this.lastTop = this.scroller.scrollTop;
    this.lastHeight = this.scroller.scrollHeight;
  }

  /** Do something to what stands above, and leave the line that is being read where it is. @param {() => void} change */
  #keepingPlace(change) {
    if (this.isFollowing) { change(); return; }
    const top = this.scroller.getBoundingClientRect().top;
    const anchor = [...this.log.children].find((node) => node.getBoundingClientRect().bottom > top);
    const before = anchor?.getBoundingClientRect().top ?? 0;
    change();
    const moved = anchor?.isConnected ? anchor.getBoundingClientRect().top - before : 0;
    if (Math.abs(moved) > 0.5) this.scroller.scrollTop += moved;
    this.lastTop = this.scroller.scrollTop;
  }

  #older() {
    const { view } = this.app;
    if (this.first > 0) {
      const all = view.messages.list();
      this.#keepingPlace(() => this.#window(all, Math.max(0, this.first - MORE)));
    } else if (view.hasOlder) { this.older.hidden = false; this.app.shell.loadOlder(); }
  }

  // ── what is drawn ──

  /** All may have changed: another session, or a load. */
  reset() {
    const { view } = this.app;
    const isOther = this.session !== view.current;
    if (isOther) {
      this.session = view.current;
      this.nodes.clear();
      this.log.replaceChildren();
      this.#follow(true);
    }
    this.older.hidden = !view.loads.find('load_messages', view.current)?.before;
    const all = view.messages.list();
    const firstShown = this.log.firstElementChild instanceof HTMLElement ? this.log.firstElementChild.dataset.id : undefined;
    const at = firstShown && !this.isFollowing ? all.findIndex((message) => message.id === firstShown) : -1;
    const start = at >= 0 ? Math.max(0, at - (at > 0 ? MORE : 0)) : Math.max(0, all.length - AT_FIRST);
    this.#keepingPlace(() => this.#window(all, start));
    for (const message of all) this.nodes.get(message.id)?.update(message);
  }

  /** A message is new or was replaced. @param {string} id */
  put(id) { later(`message ${id}`, () => this.#draw(id)); }

  /** @param {string} id */
  #draw(id) {
    const message = this.app.view.messages.get(id);
    const known = this.nodes.get(id);
    if (!message) { known?.node.remove(); this.nodes.delete(id); return; }
    if (known) known.update(message);
    else this.#window(this.app.view.messages.list(), this.first);
    if (this.isFollowing && this.nodes.size > MOST) {
      const all = this.app.view.messages.list();
      this.#window(all, Math.max(0, all.length - AT_FIRST));
    }
  }

  /** Tool results and outputs changed: their cards are elsewhere. @param {string} callId */
  card(callId) {
    later(`call ${callId}`, () => {
      for (const node of this.nodes.values()) {
        for (const { type, view } of node.views) if (type === 'tool_call' && view.id === callId) view.refresh();
      }
    });
  }

  /** Put exactly the messages from `start` on into the document. @param {Message[]} all @param {number} start */
  #window(all, start) {
    this.first = start;
    const wanted = all.slice(start).filter((message) => message.role !== 'tool');
    const ids = new Set(wanted.map((message) => message.id));
    for (const [id, node] of this.nodes) if (!ids.has(id)) { node.node.remove(); this.nodes.delete(id); }
    /** @type {Element|null} */
    let place = this.log.firstElementChild;
    for (const message of wanted) {
      let node = this.nodes.get(message.id);
      if (!node) this.nodes.set(message.id, node = new MessageNode(this.app, message));
      if (place && node.node === place) place = place.nextElementSibling;
      else this.log.insertBefore(node.node, place);
    }
  }

  /** Show one message, such as one that was searched for. @param {string} id */
  async find(id) {
    const { view, shell } = this.app;
    const isComing = () => view.link.state !== 'connected' || view.loads.isLoading(view.current);
    for (let tries = 0; tries < 500 && !view.messages.get(id) && (view.hasOlder || isComing()); tries++) {
      if (!isComing()) shell.loadOlder();
      await this.app.nextChange();
    }
    this.reset();
    const all = this.app.view.messages.list();
    const at = all.findIndex((message) => message.id === id);
    if (at < 0) return;
    this.#follow(false);
    if (at < this.first) this.#window(all, Math.max(0, at - 5));
    const node = this.nodes.get(id)?.node;
    if (!node) return;
    this.scroller.scrollTop += node.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top - 16;
    node.classList.add('found');
    this.lastTop = this.scroller.scrollTop;
  }
}
