// For who runs the server: what goes on in every workspace now, what it costs, who is here. For people, not for machines.

import { byId, fill, glyph, h, later, marked } from './dom.js';
import { browserName } from './login.js';
import { clientName } from './sessions.js';
import { keptJson } from './store.js';
import { addressOf, baseName, counted, lasted, money, oneLine, since, thousands } from './text.js';

/** @typedef {import('./app.js').App} App */

const STATES = /** @type {Record<string, string>} */ ({ active: 'running', queued: 'queued', accepted: 'accepted', folded: 'joined another', completed: 'done', failed: 'failed', cancelled: 'stopped', interrupted: 'cut off' });

export class Dashboard {
  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.app = app;
    this.root = root;
    /** @type {Map<string, any>} */
    this.runs = new Map();
    /** @type {Map<string, any>} */
    this.asks = new Map();
    /** @type {any[]} */
    this.stats = [];
    /** @type {any[]} */
    this.workspaces = [];
    /** @type {any} */
    this.version = null;
    this.isLoaded = false;
    /** @type {any[]} */
    this.extensions = [];
    this.drawnPeople = '';
    app.onDrawn = () => this.look();
  }

  get #others() { return [...this.app.view.clients.values()].filter((client) => client.client_id !== this.app.api.clientId); }

  get isShown() { return byId('main').dataset.view === 'home'; }

  show() {
    byId('main').dataset.view = 'home';
    document.body.classList.remove('drawer-open');
    document.title = 'Covey';
    void this.#load();
    this.draw();
  }

  hide() { byId('main').dataset.view = 'session'; }

  /** What goes on in all workspaces, as it happens. @param {import('./sse.js').Frame[]} frames */
  take(frames) {
    for (const frame of frames) this.#event(JSON.parse(frame.data));
    later('everywhere', () => { this.#drawOthers(); if (this.isShown) this.draw(); });
  }

  /** @param {any} event */
  #event({ type, workspace_id: workspaceId, path, payload }) {
    const value = payload?.payload ?? {};
    if (type === 'present') {
      this.asks.clear();
      for (const [id, run] of this.runs) if (!run.ended_at) this.runs.delete(id);
    } else if (type === 'run') this.runs.set(value.run_id, { ...this.runs.get(value.run_id), ...value, workspace_id: workspaceId, path });
    else if (type === 'run_complete') {
      for (const [id, ask] of this.asks) if (ask.run_id === value.run_id) this.asks.delete(id);
    } else if (type === 'permission_request' || type === 'question_batch_request' || type === 'approval_request') this.asks.set(value.id, { ...value, workspace_id: workspaceId, path });
    else if (type === 'permission_notification' && (value.granted || value.denied)) this.asks.delete(value.permission_id);
    else if (type === 'question_batch_notification') this.asks.delete(value.batch_id);
    else if (type === 'approval_notification') this.asks.delete(value.approval_id);
  }

  async #load() {
    const { api } = this.app;
    const found = await this.app.trying('The overview could not be loaded', () => Promise.all([api.allRuns(), api.stats(30), api.workspaces(), api.version()]));
    if (!found) return;
    const [runs, stats, workspaces, version] = found;
    for (const run of runs) if (!this.runs.has(run.run_id)) this.runs.set(run.run_id, run);
    Object.assign(this, { stats, workspaces, version, isLoaded: true });
    this.draw();
    const brought = await Promise.all(workspaces.map((/** @type {any} */ { id, path }) => api.extensions(id).then((all) => all.map((/** @type {any} */ each) => ({ ...each, path })), () => [])));
    this.extensions = brought.flat();
    this.draw();
  }

  /** Other workspaces that run or need somebody, in the list of sessions. */
  #drawOthers() {
    const here = this.app.api.workspaceId;
    /** @type {Map<string, {path: string, running: number, asks: number}>} */
    const others = new Map();
    const of = (/** @type {any} */ each) => {
      if (!others.has(each.workspace_id)) others.set(each.workspace_id, { path: each.path ?? '', running: 0, asks: 0 });
      return /** @type {{path: string, running: number, asks: number}} */ (others.get(each.workspace_id));
    };
    for (const run of this.runs.values()) if (!run.ended_at && run.workspace_id !== here && run.workspace_id) of(run).running++;
    for (const ask of this.asks.values()) if (ask.workspace_id !== here && ask.workspace_id) of(ask).asks++;
    fill(byId('others'), [...others].map(([id, { path, running, asks }]) => h(`a.other${asks ? '.needs' : ''}`, { href: addressOf(id), title: path },
      h('span', null, baseName(path)), h('small', null, asks ? 'needs you' : counted(running, 'run')))));
  }

  draw() {
    if (!this.isShown) return;
    const runs = [...this.runs.values()].sort((a, b) => b.accepted_at - a.accepted_at);
    const open = runs.filter((run) => !run.ended_at);
    const ended = runs.filter((run) => run.ended_at);
    const failed = ended.filter((run) => run.state === 'failed' || run.state === 'interrupted');
    const today = new Date().toISOString().slice(0, 10);
    const cost = (/** @type {(row: any) => boolean} */ which) => this.stats.filter(which).reduce((sum, row) => sum + row.cost, 0);
    fill(this.root, h('h1', null, h('button.icon-button.drawer-button', { aria: { label: 'Sessions' }, onclick: () => document.body.classList.toggle('drawer-open') }, glyph('menu')), 'This server'), h('div.tiles', null,
      tile(String(open.length), 'runs open now'), tile(String(this.asks.size), 'need somebody', this.asks.size > 0), tile(money(cost((row) => row.day === today)), 'today'), tile(money(cost(() => true)), 'in 30 days'), tile(String(failed.length), 'failed lately', failed.length > 0)),
    this.#section('Needs somebody', [...this.asks.values()].map((ask) => this.#row(ask, 'ask', oneLine(ask.description || ask.tool_name || 'a question'), 'asks'))),
    this.#section('Running and queued', open.map((run) => this.#row(run, run.state === 'active' ? 'busy' : 'circle', oneLine(run.prompt), `${STATES[run.state] ?? run.state}${run.started_at ? ` ${lasted(Date.now() / 1000 - run.started_at)}` : ''}`)), 'Nothing runs.'),
    this.#section('Recent', ended.slice(0, 15).map((run) => this.#row(run, run.state === 'completed' ? 'check' : run.state === 'cancelled' ? 'stop' : 'close', oneLine(run.prompt), `${STATES[run.state] ?? run.state} ${since(run.ended_at)}`, run.error)), this.isLoaded ? 'Nothing has run yet.' : 'Loading…'),
    this.#people(), this.#spending(), this.#places(), this.#extensions(), this.version && h('p.hint', null, `Covey ${oneLine(this.version.version)} · build ${oneLine(this.version.build_id)} · Python ${oneLine(this.version.python_version)} · ${oneLine(this.version.platform)}`));
  }

  /** @param {string} title @param {any[]} rows @param {string} [empty] */
  #section(title, rows, empty = '') {
    if (!rows.length && !empty) return null;
    return h('section', null, h('h2', null, title), rows.length ? h('ul.rows', null, rows) : h('p.hint', null, empty));
  }

  /** @param {any} of @param {string} sign @param {string} text @param {string} state @param {string} [error] */
  #row(of, sign, text, state, error) {
    return h(`li.${of.state ?? 'ask'}`, null, h('a', { href: addressOf(of.workspace_id, of.session_id) }, glyph(sign), h('span.what', null, text || 'an attachment'), h('small', null, `${baseName(of.path ?? '')} · ${state}`)), error && h('p.error', null, marked(oneLine(error))));
  }

  /** Who is attached: this tab, others to the workspace that it shows, as they come and go, and those elsewhere. */
  #people() {
    const others = this.#others;
    const row = (/** @type {string} */ name, /** @type {string} */ where) => h('li', null, h('div.row-line', null, glyph('dot'), h('span.what', null, name), h('small', null, where)));
    const titleOf = (/** @type {string} */ session) => session && this.app.titleOf(session);
    this.drawnPeople = JSON.stringify(others);
    return this.#section('Here now', [row(`${browserName()} (browser), this one`, titleOf(this.app.view.current)), ...others.map((client) => row(clientName(client), titleOf(client.session_id))),
      ...this.workspaces.filter(({ id }) => id !== this.app.api.workspaceId).flatMap(({ path, clients }) => (clients ?? []).map((/** @type {any} */ client) => row(clientName(client), baseName(path))))]);
  }

  /** Somebody came or went. */
  look() {
    if (this.isShown && this.drawnPeople !== JSON.stringify(this.#others)) this.draw();
  }

  #spending() {
    /** @type {Map<string, any>} */
    const models = new Map();
    for (const row of this.stats) {
      const sum = models.get(row.model) ?? { runs: 0, tokens: 0, cost: 0 };
      models.set(row.model, { runs: sum.runs + row.runs, tokens: sum.tokens + row.prompt_tokens + row.completion_tokens, cost: sum.cost + row.cost });
    }
    if (!models.size) return null;
    const rows = [...models].sort(([, a], [, b]) => b.cost - a.cost || b.tokens - a.tokens);
    return h('section', null, h('h2', null, 'Spending, 30 days'), h('table', null, h('thead', null, h('tr', null, ['Model', 'Runs', 'Tokens', 'Cost'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, rows.map(([model, sum]) => h('tr', null, h('td', null, oneLine(model) || 'unknown'), h('td.n', null, String(sum.runs)), h('td.n', null, thousands(sum.tokens)), h('td.n', null, money(sum.cost)))))));
  }

  /** Those of every open workspace. */
  #extensions() {
    return this.#section('Extensions', this.extensions.map((each) => h('li', null, h('div.row-line', null,
      glyph(each.state === 'ready' || each.state === 'resting' ? 'dot' : each.state === 'failed' ? 'close' : 'circle'), h('span.what', null, `${oneLine(each.name)} (${oneLine(each.kind)})`),
      h('small', null, `${baseName(each.path)} · ${oneLine(each.state).replace('_', ' ')}${each.memory_mb ? ` · ${Math.round(each.memory_mb)} MB` : ''}`)), each.why && h('p.error', null, oneLine(each.why)))));
  }

  #places() {
    const known = keptJson('workspaces') ?? {};
    const open = new Map(this.workspaces.map((each) => [each.id, each.path]));
    for (const row of this.stats) if (!open.has(row.workspace_id)) known[row.workspace_id] ??= row.path;
    const all = [...new Map([...Object.entries(known), ...open])].map(([id, path]) => ({ id, path: String(path), isOpen: open.has(id) }));
    if (!all.length) return null;
    all.sort((a, b) => Number(b.isOpen) - Number(a.isOpen) || (a.path < b.path ? -1 : 1));
    return h('section', null, h('h2', null, 'Workspaces'), h('ul.rows', null, all.map(({ id, path, isOpen }) => h('li', null, h('a', { href: addressOf(id) }, glyph(isOpen ? 'dot' : 'circle'), h('span.what', null, oneLine(path)), h('small', null, isOpen ? 'open' : ''))))));
  }
}

/** @param {string} number @param {string} label @param {boolean} isLoud */
const tile = (number, label, isLoud = false) => h(`div.tile${isLoud ? '.loud' : ''}`, null, h('b', null, number), h('span', null, label));
