// The view: events, answers and intents in; all that a face shows, and commands to its shell, out. Pure, without DOM.
// docs/VIEW_STATE.md describes it, and tests/vectors/recorded/*.json check it. A part of the small client (docs/PAGE.md).

import { Transcript, finishOf } from './growth.js';
import { Loads } from './loads.js';
import { AskList, Outbox, SessionList } from './records.js';

/** @typedef {import('./types.js').Command} Command */
/** @typedef {import('./types.js').Message} Message */
/** @typedef {import('./types.js').Envelope} Envelope */
/** @typedef {{kind: 'whole'|'grew'|'removed'|'reset'|'hole', id: string, part?: number}} Change */
/** @typedef {{commands: Command[], change?: Change}} Step */

const OUTPUTS_SHOWN = 32;
const OUTPUT_BYTES = 64 * 1024;
const HELD_DELTAS = 4096;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** All that a face shows of a workspace. Read its fields; change it by `apply` alone. */
export class View {
  constructor(sessionId = '') {
    this.link = { state: 'connecting', since: 0, why: '', last_event_id: '', gap: '' };
    this.sessions = new SessionList(sessionId);
    this.messages = new Transcript();
    this.elsewhere = new Transcript();
    this.hasOlder = false;
    /** @type {Map<string, {tool_call_id: string, run_id: string, start: number, data: Uint8Array}>} */
    this.outputs = new Map();
    /** @type {Map<string, any>} */
    this.terminals = new Map();
    this.asks = new AskList();
    this.outbox = new Outbox();
    /** @type {Map<string, import('./types.js').PresentClient>} */
    this.clients = new Map();
    /** @type {any} */
    this.workspace = null;
    this.skipsPermissions = false;
    this.loads = new Loads();
    /** @type {any[]} */
    this.held = [];
  }

  get current() { return this.sessions.current; }

  /** Take one input in. @param {any} fed @returns {Step} */
  apply(fed) {
    switch (fed.input) {
      case 'event': return this.#received(fed.event, fed.id ?? '');
      case 'connecting': Object.assign(this.link, { state: 'connecting', since: fed.at, why: '' }); return none();
      case 'connected': return { commands: this.#connected(fed.at) };
      case 'disconnected': this.#disconnected(fed); return none();
      case 'prompt_accepted': this.#accepted(fed.receipt); return none();
      case 'prompt_refused': this.outbox.refused(fed.run_id, fed.message); return none();
      case 'cancel_answered':
        this.outbox.cancelAnswered(fed.session_id, fed.run_id ?? '', fed.receipt, this.sessions.openRunIds());
        return none();
      case 'cancel_failed': this.outbox.cancels.delete(`${fed.session_id} ${fed.run_id ?? ''}`); return none();
      case 'answer_failed': this.asks.answering(fed.ask_id, false); return none();
      case 'session_opened': return { commands: this.#open(fed.session_id) };
      case 'older_wanted': return { commands: this.#older() };
      case 'prompt_given': return { commands: this.#given(fed) };
      case 'prompt_dropped': this.outbox.prompts.delete(fed.run_id); return none();
      case 'cancel_asked':
        return { commands: this.outbox.cancel(fed.session_id, fed.run_id ?? '', fed.at ?? 0) };
      case 'answer_given': this.asks.answering(fed.ask_id, true); return none();
      default: return this.#loaded(fed);
    }
  }

  // ── the connection ──

  /** @param {number} at @returns {Command[]} */
  #connected(at) {
    Object.assign(this.link, { state: 'connected', since: at, why: '' });
    /** @type {Command[]} */
    let commands;
    if (this.link.last_event_id) {
      commands = this.loads.again();
      if (!this.loads.find('load_asks')) commands.push(this.loads.begin('load_asks'));
    } else commands = this.#loadAll();
    if (this.current) commands.push({ command: 'show_session', session_id: this.current });
    return commands.concat(this.outbox.connected());
  }

  /** @param {any} fed */
  #disconnected(fed) {
    if (this.link.state === 'connected') Object.assign(this.link, { state: 'lost', since: fed.at });
    this.link.why = fed.why ?? '';
    this.clients.clear();
    for (const ask of this.asks.open.values()) ask.isBeingAnswered = false; // if it got lost, the server asks again
  }

  /** @returns {Command[]} */
  #loadAll() {
    const begun = ['load_workspace', 'load_sessions'].map((kind) => this.loads.begin(kind));
    begun.push(this.loads.begin('load_runs', { session_id: '' }), this.loads.begin('load_asks'));
    return begun.concat(this.#loadSession());
  }

  /** @returns {Command[]} */
  #loadSession() {
    if (!this.current) return [];
    const session_id = this.current;
    return [this.loads.begin('load_messages', { session_id, before: '' }), this.loads.begin('load_runs', { session_id })];
  }

  // ── events ──

  /** @param {Envelope} event @param {string} id @returns {Step} */
  #received(event, id) {
    if (id) this.link.last_event_id = id;
    const change = event.payload?.type;
    const value = event.payload?.payload;
    if (!['created', 'updated', 'deleted'].includes(change)) return none();
    switch (event.type) {
      case 'message_delta': return this.#grown(value);
      case 'tool_output': this.#printed(value); return none();
      case 'message': return this.#message(value, change, id);
      case 'session': this.#session(value, change === 'deleted'); return none();
      case 'run': this.#run(value); return none();
      case 'run_complete': this.#ended(value); return none();
      case 'agent_event': this.#agentEvent(value); return none();
      case 'permission_request':
      case 'question_batch_request':
      case 'approval_request':
        this.loads.touch('load_asks', value.id);
        this.asks.request(value);
        return none();
      case 'permission_notification':
      case 'question_batch_notification':
      case 'approval_notification':
        this.loads.touch('load_asks', this.asks.notified(event.type, value));
        return none();
      case 'presence': this.#presence(value); return none();
      case 'config_changed': return { commands: this.#configChanged(value) };
      case 'gap':
        this.link.last_event_id = value.resume_from;
        this.link.gap = value.reason;
        return { commands: this.#loadAll() };
      default: return none();
    }
  }

  /** @param {any} delta @returns {Step} */
  #grown(delta) {
    this.#goesOn(delta.session_id, delta.run_id);
    if (delta.session_id !== this.current) {
      if (this.elsewhere.grow(delta) === undefined) this.elsewhere.pop(delta.message_id);
      return none();
    }
    const isLoading = this.loads.isLoading(delta.session_id);
    const fresh = this.messages.grow(delta);
    if (fresh === undefined && isLoading) {
      if (this.held.length < HELD_DELTAS) this.held.push(delta);
      return none();
    }
    if (fresh === undefined) return { commands: [{ command: 'reconnect' }], change: { kind: 'hole', id: delta.message_id } };
    if (!fresh) return none();
    if (isLoading) this.loads.touch('load_messages', delta.message_id, delta.session_id);
    return { commands: [], change: { kind: 'grew', id: delta.message_id, part: delta.part } };
  }

  /** The run says something, so it does not wait for another attempt. @param {string} session @param {string} run */
  #goesOn(session, run) {
    const record = this.sessions.findRun(session, run);
    if (record) record.retry = null;
  }

  /** @param {Message} message @param {string} change @param {string} id @returns {Step} */
  #message(message, change, id) {
    this.loads.touch('load_messages', message.id, message.session_id);
    if (id) this.#goesOn(message.session_id, message.run_id ?? '');
    if (message.session_id !== this.current) {
      if (change === 'deleted' || message.role !== 'assistant' || finishOf(message)) this.elsewhere.pop(message.id);
      else this.elsewhere.put(message);
      return none();
    }
    this.outputs.delete(message.id);  // a person's own command, which has ended
    for (const part of message.parts) if (part.type === 'tool_result') this.outputs.delete(part.data.tool_call_id);
    if (change === 'deleted') {
      this.messages.pop(message.id);
      return { commands: [], change: { kind: 'removed', id: message.id } };
    }
    this.messages.put(message);
    return { commands: [], change: { kind: 'whole', id: message.id } };
  }

  /** @param {import('./types.js').ToolOutput} printed */
  #printed(printed) {
    if (printed.session_id !== this.current) return;
    let output = this.outputs.get(printed.tool_call_id);
    if (!output) {
      output = { tool_call_id: printed.tool_call_id, run_id: printed.run_id, start: printed.offset, data: new Uint8Array() };
      this.outputs.set(printed.tool_call_id, output);
    }
    if (printed.offset > output.start + output.data.length) { output.start = printed.offset; output.data = new Uint8Array(); }
    const end = output.start + output.data.length;
    const fresh = encoder.encode(printed.delta).subarray(end - printed.offset);
    const all = new Uint8Array(output.data.length + fresh.length);
    all.set(output.data);
    all.set(fresh, output.data.length);
    let cut = Math.max(0, all.length - OUTPUT_BYTES);
    while (cut && cut < all.length && (/** @type {number} */ (all[cut]) & 0xc0) === 0x80) cut++;
    output.data = all.subarray(cut);
    output.start += cut;
    const first = this.outputs.keys().next().value;
    if (this.outputs.size > OUTPUTS_SHOWN && first !== undefined) this.outputs.delete(first);
  }

  /** @param {any} session @param {boolean} isDeleted */
  #session(session, isDeleted) {
    this.loads.touch('load_sessions', session.id);
    if (!isDeleted) { this.sessions.of(session.id).session = session; return; }
    this.asks.closeWhere((request) => request.session_id === session.id);
    this.outbox.dropSession(session.id);
    this.sessions.records.delete(session.id);
    if (session.id === this.current) this.#show('');
  }

  /** @param {any} run */
  #run(run) {
    this.loads.touch('load_runs', run.run_id, run.session_id);
    this.sessions.putRun(run);
    this.outbox.runKnown(run);
  }

  /** @param {any} terminal */
  #ended(terminal) {
    this.asks.closeWhere((request) => request.run_id === terminal.run_id);
    if (terminal.session_id === this.current) this.terminals.set(terminal.run_id, terminal);
    for (const [id, output] of [...this.outputs]) if (output.run_id === terminal.run_id) this.outputs.delete(id);
  }

  /** @param {any} event */
  #agentEvent(event) {
    const record = this.sessions.findRun(event.session_id, event.run_id);
    if (!record) return;
    if (event.type === 'retry') record.retry = event;
    else if (event.type === 'warning') record.warning = event;
    else if (event.type === 're_authenticate') record.key_refused = true;
  }

  /** @param {any} presence */
  #presence(presence) {
    const { client_id, session_id, name = null, kind = null } = presence;
    if (presence.attached) this.clients.set(client_id, { client_id, session_id, name, kind });
    else this.clients.delete(client_id);
  }

  /** @param {any} changed @returns {Command[]} */
  #configChanged(changed) {
    if (changed.skip_permissions === undefined || changed.skip_permissions === null) return [this.loads.begin('load_workspace')];
    this.loads.touch('load_workspace', 'skip_permissions');
    this.skipsPermissions = changed.skip_permissions;
    return [];
  }

  // ── answers ──

  /** @param {any} answer @returns {Step} */
  #loaded(answer) {
    /** @type {Change|undefined} */
    let change;
    const load = this.loads.end(LOADS[answer.input] ?? '', answer.load);
    if (load) change = this.#take(answer, load);
    if (!this.loads.open.size) this.link.gap = '';
    return { commands: change?.kind === 'hole' ? [{ command: 'reconnect' }] : [], change };
  }

  /** @param {any} answer @param {{command: Command, touched: Set<string>}} load @returns {Change|undefined} */
  #take(answer, { command, touched }) {
    switch (answer.input) {
      case 'sessions_loaded': return this.#sessionsLoaded(answer.sessions, touched);
      case 'runs_loaded':
        if (command.session_id) this.sessions.loadRunsOf(command.session_id, answer.runs, touched);
        else this.sessions.loadOpenRuns(answer.runs, touched);
        for (const run of answer.runs) this.outbox.runKnown(run);
        return undefined;
      case 'messages_loaded':
        return command.session_id === this.current ? this.#messagesLoaded(answer, Boolean(command.before), touched) : undefined;
      case 'asks_loaded':
        this.asks.load([...(answer.permissions ?? []), ...(answer.questions ?? []), ...(answer.approvals ?? [])], touched);
        return undefined;
      case 'workspace_loaded':
        this.workspace = answer.workspace;
        if (!touched.has('skip_permissions')) this.skipsPermissions = answer.workspace.yolo;
        return undefined;
      default: return undefined;
    }
  }

  /** @param {any[]} sessions @param {Set<string>} newer @returns {Change|undefined} */
  #sessionsLoaded(sessions, newer) {
    const shown = this.current;
    this.sessions.load(sessions, newer);
    if (this.current === shown) return undefined;
    this.loads.dropSession(shown); // it was deleted, and nobody could say so
    this.#showMessages('');
    return { kind: 'reset', id: '' };
  }

  /** @param {any} answer @param {boolean} isOlder @param {Set<string>} newer @returns {Change} */
  #messagesLoaded(answer, isOlder, newer) {
    this.hasOlder = Boolean(answer.has_older);
    if (isOlder) { this.messages.prepend(answer.messages, newer); return { kind: 'reset', id: '' }; }
    this.messages.load(answer.messages, newer);
    const held = this.held;
    this.held = [];
    const holes = held.filter((delta) => this.messages.grow(delta) === undefined);
    return holes.length ? { kind: 'hole', id: holes[0].message_id } : { kind: 'reset', id: '' };
  }

  /** @param {any} receipt */
  #accepted(receipt) {
    this.outbox.accepted(receipt);
    const record = this.sessions.findRun(receipt.session_id, receipt.run_id);
    if (record) this.outbox.runKnown(record.run);
  }

  // ── what the user does ──

  /** @param {string} sessionId @returns {Command[]} */
  #open(sessionId) {
    if (sessionId === this.current) return [];
    this.#show(sessionId);
    this.loads.touch('load_sessions', sessionId); // so new, perhaps, that an answer under way does not have it
    const commands = [{ command: 'show_session', session_id: sessionId }, ...this.#loadSession()];
    return this.link.state === 'connected' ? commands : [];
  }

  /** @param {string} sessionId */
  #show(sessionId) {
    this.loads.dropSession(this.current);
    this.sessions.show(sessionId);
    this.#showMessages(sessionId);
  }

  /** Of the session before, what is in progress stays known. @param {string} sessionId */
  #showMessages(sessionId) {
    for (const message of this.messages.list()) {
      const entry = message.role === 'assistant' && !finishOf(message) ? this.messages.pop(message.id) : undefined;
      if (entry) this.elsewhere.entries.set(message.id, entry);
    }
    this.messages = new Transcript();
    for (const [id, entry] of [...this.elsewhere.entries]) {
      if (entry.message.session_id === sessionId) { this.messages.entries.set(id, entry); this.elsewhere.pop(id); }
    }
    this.hasOlder = false;
    this.outputs.clear();
    this.terminals.clear();
    this.held = [];
  }

  /** @returns {Command[]} */
  #older() {
    if (!this.hasOlder || this.loads.find('load_messages', this.current)) return [];
    return [this.loads.begin('load_messages', { session_id: this.current, before: this.messages.firstId })];
  }

  /** @param {any} fed @returns {Command[]} */
  #given({ prompt, at = 0 }) {
    return this.sessions.findRun(prompt.session_id, prompt.run_id) ? [] : this.outbox.give(prompt, at);
  }
}

/** @type {Record<string, string>} */
const LOADS = {
  sessions_loaded: 'load_sessions', runs_loaded: 'load_runs', messages_loaded: 'load_messages',
  asks_loaded: 'load_asks', workspace_loaded: 'load_workspace',
};

/** @returns {Step} */
const none = () => ({ commands: [] });

/** The text of an output as far as it is known. @param {{data: Uint8Array}} output */
export const outputText = (output) => decoder.decode(output.data);

/** What the context of a session holds. @param {View} view */
export function metersOf(view) {
  const session = view.sessions.records.get(view.current)?.session;
  if (!session) return null;
  const config = view.workspace?.config;
  const large = config?.models?.large;
  const choice = session.model || (large ? `${large.provider}/${large.model}` : '');
  const provider = config?.providers?.[choice.split('/')[0] ?? ''];
  const model = choice.slice(choice.indexOf('/') + 1);
  const window = provider?.models?.find((/** @type {any} */ each) => each.id === model)?.context_window ?? 0;
  const { prompt_tokens, completion_tokens, cost } = session;
  return { prompt_tokens, completion_tokens, context_window: window, cost };
}
