// The app: one workspace in one tab. It holds the parts together, and is where they find each other.

import { Api, ApiError, randomId } from './api.js';
import { AskDock } from './asks.js';
import { Composer } from './composer.js';
import { ask, confirm } from './dialogs.js';
import { byId, fill, h, later } from './dom.js';
import { metersOf } from './fold.js';
import { announce, Notifier } from './notify.js';
import { QueueDock } from './queue.js';
import { Review } from './review.js';
import { SessionsPane } from './sessions.js';
import { Shell } from './shell.js';
import { keep, keptJson } from './store.js';
import { StatusLine } from './status.js';
import { addressOf, baseName, money, oneLine, thousands } from './text.js';
import { TranscriptPane } from './transcript.js';

export class App {
  /** @param {string} token @param {import('./link.js').HubPort} port */
  constructor(token, port) {
    this.api = new Api(token);
    this.port = port;
    this.shell = new Shell(this.api, port);
    /** @type {Map<string, any>} */
    this.results = new Map();
    /** @type {Set<string>} */
    this.answeredHere = new Set();
    /** @type {Map<string, boolean>} */
    this.toggled = new Map();
    /** @type {(() => any[])|undefined} */
    this.ownCommands = undefined;
    /** @type {Promise<any[]>|undefined} */
    this.custom = undefined;
    this.onDrawn = () => {};
    this.isTouch = matchMedia('(pointer: coarse)').matches;
    this.path = '';
    this.route = { workspace: '', session: '', message: '' };
    /** @type {(() => void)[]} */
    this.waiters = [];
    this.review = new Review(this, byId('review'));
    this.transcript = new TranscriptPane(this, byId('scroller'), byId('log'), byId('latest'));
    this.asks = new AskDock(this, byId('asks'));
    this.queue = new QueueDock(this, byId('queue'));
    this.status = new StatusLine(this, byId('status'), byId('banner'));
    this.sessions = new SessionsPane(this, byId('sessions'));
    this.notifier = new Notifier(this);
    this.composer = new Composer(this, {
      form: byId('composer'), field: byId('prompt'), send: byId('send'), stop: byId('stop'), attach: byId('attach'),
      file: byId('file'), mode: byId('mode'), chips: byId('chips'), hint: byId('hint'), options: byId('options'),
    });
    this.shell.onStep = (input, step) => this.#stepped(input, step);
    this.shell.onCancelled = (covered) => this.toast(stopped(covered));
    this.shell.onConnected = (path) => this.#connected(path);
    port.onmessage = (event) => this.shell.take(event.data);
  }

  get view() { return this.shell.view; }
  get root() { return this.path; }
  get record() { return this.view.sessions.records.get(this.view.current); }
  get isBusy() {
    const isSending = [...this.view.outbox.prompts.values()].some((sent) => sent.prompt.session_id === this.view.current && sent.state !== 'refused');
    return Boolean(this.record?.isBusy) || isSending;
  }

  /** A session, or a child of it, which asks in its parent's name. @param {string} id */
  isInShown(id) { return id === this.view.current || this.view.sessions.records.get(id)?.session?.parent_session_id === this.view.current; }

  /** @param {string} id */
  titleOf(id) { return oneLine(this.view.sessions.records.get(id)?.session?.title ?? '') || 'New session'; }

  // ── what is fed to the view is drawn at the next frame ──

  /** @param {any} input @param {import('./fold.js').Step} step */
  #stepped(input, step) {
    const { change } = step;
    if (change?.kind === 'grew') { this.transcript.put(change.id); return; }
    if (change?.kind === 'whole' || change?.kind === 'removed') this.#message(change.id);
    else if (change?.kind === 'reset') { this.#learnAll(); later('reset', () => this.transcript.reset()); }
    if (input.input === 'event') {
      const { type, payload } = input.event;
      if (type === 'tool_output') { this.transcript.card(payload.payload.tool_call_id); return; }
      if (type === 'message_delta') return;
      if (type === 'file') { this.review.changed(payload.payload); return; }
      if (payload.payload?.tool_call_id) this.transcript.card(payload.payload.tool_call_id); // an ask came, or was answered
      this.notifier.take(type, payload.payload);
    }
    later('frame', () => this.draw());
    for (const wake of this.waiters.splice(0)) wake();
  }

  /** Until something in the view has changed. @returns {Promise<void>} */
  nextChange() { return new Promise((resolve) => { this.waiters.push(resolve); }); }

  /** @param {string} id */
  #message(id) {
    const message = this.view.messages.get(id);
    for (const part of message?.parts ?? []) {
      if (part.type !== 'tool_result') continue;
      this.results.set(part.data.tool_call_id, part.data);
      this.transcript.card(part.data.tool_call_id);
    }
    this.transcript.put(id);
  }

  #learnAll() {
    for (const message of this.view.messages.list()) {
      for (const part of message.parts) if (part.type === 'tool_result') this.results.set(part.data.tool_call_id, part.data);
    }
  }

  draw() {
    document.body.dataset.link = this.view.link.state;
    document.body.dataset.session = this.view.current;
    document.body.dataset.loading = this.view.loads.open.size ? 'yes' : '';
    this.asks.draw();
    this.queue.draw();
    this.status.draw();
    this.sessions.draw();
    this.composer.drawState();
    this.#drawHeader();
    this.notifier.drawTitle();
    this.onDrawn();
    byId('empty').hidden = !(this.view.current ? this.view.link.state === 'connected' && !this.view.loads.open.size && !this.view.messages.entries.size && !this.isBusy : true);
  }

  #drawHeader() {
    const { session } = this.record ?? {};
    const title = session ? this.titleOf(session.id) : 'New session';
    const node = byId('title');
    if (node.textContent !== title) node.textContent = title;
    const meters = metersOf(this.view);
    const used = meters ? meters.prompt_tokens + meters.completion_tokens : 0;
    const share = meters?.context_window ? Math.min(100, Math.round((100 * used) / meters.context_window)) : 0;
    fill(byId('meters'), meters ? [
      meters.cost ? h('span', { title: 'What this session has cost' }, money(meters.cost)) : null,
      share || (used && !meters.context_window) ? h(`span.context${share >= 80 ? '.full' : ''}`, { title: `${used.toLocaleString('en')} tokens in context${meters.context_window ? ` of ${meters.context_window.toLocaleString('en')}` : ''}` }, meters.context_window ? `${share} % of context` : `${thousands(used)} tokens`) : null,
    ] : []);
    byId('model').textContent = this.modelName;
    byId('session-mode').textContent = this.modeName;
    byId('yolo').hidden = !this.view.skipsPermissions;
  }

  get modeName() {
    const mode = this.record?.session?.mode ?? 'ask';
    return MODE_NAMES[mode] ?? mode;
  }

  get modelName() {
    const large = this.view.workspace?.config?.models?.large;
    const own = this.record?.session?.model;
    return oneLine(own ? own.slice(own.indexOf('/') + 1) : large?.model ?? 'no model');
  }

  // ── where we are ──

  /** @param {string} path */
  #connected(path) {
    this.path = path;
    byId('workspace').textContent = baseName(path);
    byId('workspace').title = oneLine(path);
    const known = keptJson('workspaces') ?? {};
    keep('workspaces', JSON.stringify({ ...known, [this.api.workspaceId]: path }));
    this.status.connected();
    this.review.connected();
    if (this.route.workspace !== this.api.workspaceId) this.navigate({ ...this.route, workspace: this.api.workspaceId }, true);
  }

  /** @param {{workspace: string, session: string, message: string}} route @param {boolean} isReplacement */
  navigate(route, isReplacement = false) {
    this.route = route;
    const hash = addressOf(route.workspace, route.session, route.message);
    if (location.hash !== hash) history[isReplacement ? 'replaceState' : 'pushState'](null, '', hash);
  }

  /** @param {string} id @param {string} message */
  openSession(id, message = '') {
    this.navigate({ workspace: this.api.workspaceId || this.route.workspace, session: id, message });
    this.showSession(id, message);
  }

  /** @param {string} id @param {string} message */
  showSession(id, message = '') {
    document.body.classList.remove('drawer-open');
    byId('main').dataset.view = 'session';
    this.shell.open(id);
    this.review.show(id);
    void this.composer.show(`${this.route.workspace || this.api.workspaceId} ${id || 'new'}`);
    this.transcript.reset();
    if (message) void this.transcript.find(message);
    later('frame', () => this.draw());
  }

  newSession() { this.openSession(''); this.composer.focus(); }

  // ── what the user does ──

  /** @param {any} prompt */
  async prompt(prompt) {
    this.transcript.showEnd();
    let id = this.view.current;
    if (!id) {
      try {
        id = (await this.api.createSession()).id;
      } catch (error) {
        this.composer.parts.field.value = prompt.prompt;
        this.toast(`Not sent: ${/** @type {Error} */ (error).message}`);
        return;
      }
      this.navigate({ workspace: this.api.workspaceId, session: id, message: '' });
      this.shell.open(id);
      this.review.show(id);
      this.composer.moveTo(`${this.api.workspaceId} ${id}`);
      this.transcript.reset();
    }
    this.shell.post({ ...prompt, session_id: id });
  }

  stop() {
    if (!this.view.current) return;
    this.shell.cancel(this.view.current);
    byId('stop').classList.add('stopping');
    announce('Stopping');
  }

  /** @param {string} what @param {() => Promise<any>} act */
  async trying(what, act) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status !== 401) this.toast(`${what}: ${error.message}`);
      return undefined;
    }
  }

  /** What can be typed after a slash: ours, and those of the workspace. @param {string} typed */
  async slashCommands(typed) {
    const own = this.ownCommands?.() ?? [];
    return [...own, ...await this.customCommands()].filter((each) => each.name.startsWith(typed)).slice(0, 12);
  }

  /** Those that people keep in files: the server knows them. @returns {Promise<{name: string, about: string}[]>} */
  async customCommands() {
    this.custom ??= this.api.commands().then((found) => (Array.isArray(found) ? found : found?.commands ?? [])).catch(() => { this.custom = undefined; return []; });
    return (await this.custom).map((/** @type {any} */ each) => ({ name: String(each.name), about: [each.description, each.argument_hint, each.needs_trust ? 'needs `covey trust`' : ''].filter(Boolean).join(' · ') }));
  }

  /** Say something that passes. @param {string} text */
  toast(text) {
    const node = h('div.toast', null, text);
    byId('toasts').append(node);
    announce(text);
    setTimeout(() => node.remove(), 6000);
  }

  confirm(/** @type {Parameters<typeof confirm>[0]} */ question) { return confirm(question); }
  ask(/** @type {Parameters<typeof ask>[0]} */ question) { return ask(question); }

  // ── what is open stays open ──

  /** @param {HTMLDetailsElement} details @param {string} key @param {() => void} onOpen */
  keepOpen(details, key, onOpen) {
    const before = this.toggled.get(key);
    if (before) details.open = true;
    details.querySelector('summary')?.addEventListener('click', () => this.toggled.set(key, !details.open));
    details.addEventListener('toggle', () => { if (details.open) onOpen(); });
  }

  /** @param {string} key */
  wasToggled(key) { return this.toggled.has(key); }
}

/** @param {{state_found: string}[]} covered */
function stopped(covered) {
  const dropped = covered.filter((each) => each.state_found !== 'active').length;
  if (!covered.length) return 'Nothing was running';
  return [covered.length - dropped ? `Stopped ${covered.length - dropped} run` : '', dropped ? `dropped ${dropped} queued` : ''].filter(Boolean).join(', ');
}

/** @type {Record<string, string>} */
export const MODE_NAMES = { ask: 'Ask', plan: 'Plan', accept_edits: 'Accept edits', sandboxed: 'Sandboxed' };
export { randomId };
