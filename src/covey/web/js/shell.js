// The shell of a view: feeds it what the hub brings, carries out what it asks for. Without DOM.

import { ApiError } from './api.js';
import { View } from './fold.js';

/** @typedef {import('./types.js').Command} Command */
/** @typedef {import('./api.js').Api} Api */

const MESSAGES_PAGE = 100;
const RUNS_SHOWN = 200;
const FIRST_MS = 250;
const LONGEST_MS = 2_000;
const OPEN_STATES = ['accepted', 'queued', 'active', 'folded'];
const now = () => Date.now() / 1000;
/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

export class Shell {
  /** @param {Api} api @param {import('./link.js').HubPort} port @param {string} sessionId */
  constructor(api, port, sessionId = '') {
    this.api = api;
    this.port = port;
    /** @type {View} */
    this.view = new View(sessionId);
    /** Rises with each connection: what belongs to an older one is given up. */
    this.generation = 0;
    /** @type {Map<string, Command[]>} */
    this.lanes = new Map();
    /** @type {(input: any, step: import('./fold.js').Step) => void} */
    this.onStep = () => {};
    /** @type {(error: {status: number, code: string, message: string}) => void} */
    this.onRefused = () => {};
    /** @type {(frames: import('./sse.js').Frame[]) => void} */
    this.onActivity = () => {};
    /** What a cancel covered, as the server says. @type {(covered: {run_id: string, state_found: string}[]) => void} */
    this.onCancelled = () => {};
    /** @type {(path: string) => void} */
    this.onConnected = () => {};
    this.feed({ input: 'connecting', at: now() });
  }

  /** @param {any} input */
  feed(input) {
    /** @type {import('./fold.js').Step} */
    const step = this.view.apply(input);
    this.onStep(input, step);
    for (const command of step.commands) this.#carryOut(command);
    return step;
  }

  /** What the hub says. @param {any} said */
  take(said) {
    switch (said.type) {
      case 'events':
        for (const frame of said.frames) this.feed({ input: 'event', id: frame.id, event: JSON.parse(frame.data) });
        return;
      case 'connected':
        this.generation++;
        this.api.clientId = said.clientId;
        this.api.workspaceId = said.workspaceId;
        this.onConnected(said.path);
        this.feed({ input: 'connected', at: now() });
        return;
      case 'disconnected': this.#lost(said.why); return;
      case 'refused': this.onRefused(said); return;
      case 'activity': this.onActivity(said.frames); return;
      default:
    }
  }

  /** @param {string} why */
  #lost(why) {
    this.generation++;
    this.lanes.clear();
    this.feed({ input: 'disconnected', at: now(), why });
  }

  // ── intents ──

  /** @param {string} sessionId */
  open(sessionId) { this.feed({ input: 'session_opened', session_id: sessionId }); }
  loadOlder() { this.feed({ input: 'older_wanted' }); }
  /** @param {any} prompt */
  post(prompt) { this.feed({ input: 'prompt_given', prompt, at: now() }); }
  /** @param {string} runId */
  drop(runId) { this.feed({ input: 'prompt_dropped', run_id: runId }); }
  /** @param {string} sessionId @param {string} runId */
  cancel(sessionId, runId = '') { this.feed({ input: 'cancel_asked', session_id: sessionId, run_id: runId, at: now() }); }

  /** Send the answer to an ask. Gives whether it took effect. @param {string} id @param {() => Promise<any>} send */
  async answer(id, send) {
    const ask = this.view.asks.open.get(id);
    if (!ask || ask.isBeingAnswered) return false;
    this.feed({ input: 'answer_given', ask_id: id });
    try {
      return Boolean((await send()).resolved);
    } catch (error) {
      this.feed({ input: 'answer_failed', ask_id: id });
      throw error;
    }
  }

  // ── commands ──

  /** @param {Command} command */
  #carryOut(command) {
    const isConnected = this.view.link.state === 'connected';
    switch (command.command) {
      case 'send_prompt':
      case 'send_cancel': this.#send(command, isConnected); return;
      case 'show_session':
        this.api.showSession(command.session_id ?? '').catch(() => {}); // it only says where somebody looks
        return;
      case 'reconnect':
        this.#lost('text is missing');
        this.port.postMessage({ type: 'reconnect', why: 'text is missing' });
        return;
      default: if (isConnected) void this.#load(command, this.generation);
    }
  }

  /** Until there is an answer, or nobody waits for it any more. @param {Command} command @param {number} generation */
  async #load(command, generation) {
    for (let delay = FIRST_MS; ; delay = Math.min(delay * 2, LONGEST_MS)) {
      const isWanted = () => generation === this.generation
        && [...this.view.loads.open.values()].some((load) => load.command === command);
      if (!isWanted()) return;
      try {
        const answer = await this.#answerTo(command);
        if (isWanted()) this.feed({ ...answer, load: command.load });
        return;
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) return;
        await pause(delay);
      }
    }
  }

  /** @param {Command} command @returns {Promise<any>} */
  async #answerTo(command) {
    const { api } = this;
    const id = command.session_id ?? '';
    switch (command.command) {
      case 'load_workspace': return { input: 'workspace_loaded', workspace: await api.workspace() };
      case 'load_sessions': return { input: 'sessions_loaded', sessions: await this.#sessions() };
      case 'load_runs': return { input: 'runs_loaded', runs: await this.#runs(id) };
      case 'load_asks': {
        const [permissions, questions, approvals] = await Promise.all([api.permissions(), api.questions(), api.approvals()]);
        return { input: 'asks_loaded', permissions, questions, approvals };
      }
      default: {
        const found = await unless404(api.messages(id, command.before ?? '', MESSAGES_PAGE + 1), []);
        return { input: 'messages_loaded', messages: found.slice(-MESSAGES_PAGE), has_older: found.length > MESSAGES_PAGE };
      }
    }
  }

  async #sessions() {
    const found = await this.api.sessions();
    const shown = this.view.current;
    if (!shown || found.some((/** @type {any} */ session) => session.id === shown)) return found;
    const more = await unless404(this.api.oneSession(shown), null);
    return more ? [...found, more] : found;
  }

  /** @param {string} sessionId */
  async #runs(sessionId) {
    if (sessionId) return unless404(this.api.runs({ session_id: sessionId, limit: RUNS_SHOWN }), []);
    const answers = await Promise.all([
      ...OPEN_STATES.map((state) => this.api.runs({ state })), this.api.runs({ limit: RUNS_SHOWN }),
    ]);
    return [...new Map(answers.flat().map((run) => [run.run_id, run])).values()];
  }

  // ── prompts and cancels, for each session one after the other ──

  /** @param {Command} command @param {boolean} isConnected */
  #send(command, isConnected) {
    const isPrompt = command.command === 'send_prompt';
    const session = isPrompt ? this.view.outbox.prompts.get(command.run_id ?? '')?.prompt.session_id : command.session_id;
    if (!session || ((isPrompt || command.run_id) && !isConnected)) return;
    const lane = this.lanes.get(session);
    if (!lane) {
      const fresh = [command];
      this.lanes.set(session, fresh);
      void this.#sendAll(session, fresh, this.generation);
    } else if (!lane.some((each) => each.command === command.command && each.run_id === command.run_id)) lane.push(command);
  }

  /** @param {string} session @param {Command[]} lane @param {number} generation */
  async #sendAll(session, lane, generation) {
    let delay = FIRST_MS;
    while (lane.length && this.generation === generation) {
      const command = /** @type {Command} */ (lane[0]);
      const isDone = await (command.command === 'send_prompt' ? this.#post(command.run_id ?? '') : this.#cancel(command));
      if (isDone) { lane.splice(lane.indexOf(command), 1); delay = FIRST_MS; continue; }
      await pause(delay);
      delay = Math.min(delay * 2, LONGEST_MS);
      lane.sort((a, b) => Number(a.command === 'send_prompt') - Number(b.command === 'send_prompt'));
    }
    if (this.lanes.get(session) === lane) this.lanes.delete(session);
  }

  /** False: it has to be sent again. @param {string} runId */
  async #post(runId) {
    const sent = this.view.outbox.prompts.get(runId);
    if (!sent || sent.state !== 'sending') return true;
    try {
      this.feed({ input: 'prompt_accepted', receipt: await this.api.post(sent.prompt) });
    } catch (error) {
      if (error instanceof ApiError && error.isPassing) return false;
      this.feed({ input: 'prompt_refused', run_id: runId, message: String(/** @type {any} */ (error).message) });
    }
    return true;
  }

  /** That of a session is sent once: later, it would cover prompts that were accepted meanwhile. @param {Command} command */
  async #cancel({ session_id = '', run_id = '' }) {
    const cancel = this.view.outbox.cancels.get(`${session_id} ${run_id}`);
    if (!cancel || cancel.covered !== null) return true;
    try {
      const receipt = await (run_id ? this.api.cancelRun(run_id) : this.api.cancelSession(session_id));
      this.feed({ input: 'cancel_answered', session_id, run_id, receipt });
      this.onCancelled(receipt.covered);
    } catch (error) {
      if (run_id && error instanceof ApiError && error.isPassing) return false;
      this.feed({ input: 'cancel_failed', session_id, run_id });
    }
    return true;
  }
}

/** @template T @param {Promise<T>} answer @param {T} instead @returns {Promise<T>} */
async function unless404(answer, instead) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && ['session_not_found', 'message_not_found'].includes(error.code)) return instead;
    throw error;
  }
}
