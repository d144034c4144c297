// Sessions with their runs, what waits for an answer, and what was sent: the tables of a view. Without DOM.

/** @typedef {import('./types.js').Session} Session */
/** @typedef {import('./types.js').Run} Run */
/** @typedef {import('./types.js').AskRequest} AskRequest */
/** @typedef {import('./types.js').Command} Command */
/** @typedef {{run: Run, retry: any, warning: any, key_refused: boolean}} RunRecord */

const CLOSED_KEPT = 32;
const OPEN_STATES = new Set(['accepted', 'queued', 'active', 'folded']);

/** @param {Run} run */
export const hasEnded = (run) => run.ended_at !== undefined && run.ended_at !== null;

/** A session, its runs, and what the user has seen of it. */
export class SessionRecord {
  constructor() {
    /** @type {Session|undefined} */
    this.session = undefined;
    /** @type {Map<string, RunRecord>} */
    this.runs = new Map();
    this.endedSeq = 0;
    this.endedAs = '';
    this.seenSeq = 0;
  }

  get openRuns() { return [...this.runs.values()].map((record) => record.run).filter((run) => !hasEnded(run)); }
  get isBusy() { return this.openRuns.some((run) => !run.parked_by); }
  get isUnread() { return this.endedSeq > this.seenSeq; }
  get hasFailed() {
    return ['failed', 'interrupted'].includes(this.endedAs) && !this.openRuns.some((run) => run.started_at);
  }

  /** What runs was started with options of its own: no prompt joins it. */
  get keepsOthersOut() {
    const options = this.openRuns.find((run) => run.state === 'active')?.options ?? {};
    return Object.keys(options).some((name) => !['cwd', 'debug', 'unattended'].includes(name));
  }

  /** The prompts that wait, in the order in which they will run. */
  get queue() {
    return this.openRuns.filter((run) => run.state === 'queued')
      .sort((a, b) => (a.place ?? a.seq) - (b.place ?? b.seq) || a.seq - b.seq);
  }

  /** @param {Run} run */
  ended(run) { if (run.seq >= this.endedSeq) { this.endedSeq = run.seq; this.endedAs = run.state; } }

  forgetEndedRuns() { for (const [id, record] of this.runs) if (hasEnded(record.run)) this.runs.delete(id); }
}

/** The sessions of a workspace, by id. */
export class SessionList {
  /** @param {string} current */
  constructor(current = '') {
    this.current = current;
    /** @type {Map<string, SessionRecord>} */
    this.records = new Map();
    this.isLoaded = false;
  }

  /** @param {string} id */
  of(id) {
    let record = this.records.get(id);
    if (!record) this.records.set(id, record = new SessionRecord());
    return record;
  }

  /** @param {string} sessionId @param {string} runId */
  findRun(sessionId, runId) { return this.records.get(sessionId)?.runs.get(runId); }

  /** From now on its ended runs are kept, and those of the one before are not. @param {string} id */
  show(id) {
    this.records.get(this.current)?.forgetEndedRuns();
    this.current = id;
    if (id) { const record = this.of(id); record.seenSeq = record.endedSeq; }
  }

  /** @param {Run} run */
  putRun(run) {
    const record = this.of(run.session_id);
    const isShown = run.session_id === this.current;
    const known = record.runs.get(run.run_id);
    if (hasEnded(run)) {
      record.ended(run);
      if (isShown) record.seenSeq = record.endedSeq;
    }
    if (hasEnded(run) && !isShown) record.runs.delete(run.run_id);
    else if (known) { known.run = run; if (hasEnded(run)) known.retry = null; }
    else record.runs.set(run.run_id, { run, retry: null, warning: null, key_refused: false });
  }

  openRunIds() { return new Set([...this.records.values()].flatMap((r) => r.openRuns.map((run) => run.run_id))); }

  /** These are all, but for those that events have reported since.
   * @param {Session[]} sessions @param {Set<string>} newer */
  load(sessions, newer) {
    const found = new Set(sessions.map((session) => session.id));
    if (!found.has(this.current) && !newer.has(this.current)) this.current = '';
    for (const id of [...this.records.keys()]) if (!found.has(id) && !newer.has(id)) this.records.delete(id);
    for (const session of sessions) {
      const known = this.records.get(session.id);
      if (!newer.has(session.id) || (known && !known.session)) this.of(session.id).session = session;
    }
  }

  /** All that are open are among these. The first time, whatever has ended counts as seen.
   * @param {Run[]} runs @param {Set<string>} newer */
  loadOpenRuns(runs, newer) {
    const found = new Set(runs.map((run) => run.run_id));
    for (const record of this.records.values()) {
      for (const run of record.openRuns) if (!found.has(run.run_id) && !newer.has(run.run_id)) record.runs.delete(run.run_id);
    }
    this.#putAll(runs, newer);
    if (!this.isLoaded) {
      this.isLoaded = true;
      for (const record of this.records.values()) record.seenSeq = record.endedSeq;
    }
  }

  /** The newest of one session. @param {string} id @param {Run[]} runs @param {Set<string>} newer */
  loadRunsOf(id, runs, newer) {
    const found = new Set(runs.map((run) => run.run_id));
    const record = this.of(id);
    for (const [runId, known] of record.runs) {
      if (!found.has(runId) && !newer.has(runId) && hasEnded(known.run)) record.runs.delete(runId);
    }
    this.#putAll(runs, newer);
  }

  /** @param {Run[]} runs @param {Set<string>} newer */
  #putAll(runs, newer) {
    for (const run of [...runs].sort((a, b) => a.seq - b.seq)) if (!newer.has(run.run_id)) this.putRun(run);
  }
}

/** What waits for a person's answer, and what became of the last ones. */
export class AskList {
  constructor() {
    /** @type {Map<string, {kind: string, request: AskRequest, isBeingAnswered: boolean}>} */
    this.open = new Map();
    /** @type {Map<string, {request: AskRequest, outcome: string, by: string|null}>} */
    this.closed = new Map();
  }

  /** @param {AskRequest} request */
  request(request) {
    const known = this.open.get(request.id);
    if (known) { known.request = request; known.isBeingAnswered = false; return; }
    this.closed.delete(request.id);
    this.open.set(request.id, { kind: askKind(request), request, isBeingAnswered: false });
  }

  /** Somebody answered, or nobody can any more. Gives the id of the ask.
   * @param {string} type @param {any} said */
  notified(type, said) {
    if (type === 'permission_notification') {
      if (!said.granted && !said.denied) return ''; // it only says that somebody is asked
      this.#close(said.permission_id ?? '', said.granted ? 'allowed' : 'denied', said.answered_by ?? null);
      return said.permission_id ?? '';
    }
    if (type === 'approval_notification') {
      this.#close(said.approval_id, said.approved ? 'allowed' : said.refused ? 'denied' : 'closed', said.answered_by ?? null);
      return said.approval_id;
    }
    this.#close(said.batch_id, said.answered ? 'answered' : 'not_answered', said.answered_by ?? null);
    return said.batch_id;
  }

  /** @param {(request: AskRequest) => boolean} isOver */
  closeWhere(isOver) {
    for (const [id, ask] of [...this.open]) if (isOver(ask.request)) this.#close(id, 'closed', null);
  }

  /** These are all that are open, but for what events have reported since.
   * @param {AskRequest[]} requests @param {Set<string>} newer */
  load(requests, newer) {
    const found = requests.filter((request) => !newer.has(request.id));
    const ids = new Set(found.map((request) => request.id));
    for (const id of [...this.open.keys()]) if (!ids.has(id) && !newer.has(id)) this.#close(id, 'closed', null);
    for (const request of found) this.request(request);
  }

  /** @param {string} id @param {boolean} isBeingAnswered */
  answering(id, isBeingAnswered) {
    const ask = this.open.get(id);
    if (ask) ask.isBeingAnswered = isBeingAnswered;
  }

  /** @param {string} sessionId */
  waitsIn(sessionId) { return [...this.open.values()].some((ask) => ask.request.session_id === sessionId); }

  /** @param {string} id @param {string} outcome @param {string|null} by */
  #close(id, outcome, by) {
    const closed = this.closed.get(id);
    const known = this.open.get(id) ?? closed;
    this.open.delete(id);
    if (!known || (closed && known === closed && closed.outcome !== 'closed')) return;
    this.closed.set(id, { request: known.request, outcome, by });
    const first = this.closed.keys().next().value;
    if (this.closed.size > CLOSED_KEPT && first !== undefined) this.closed.delete(first);
  }
}

/** @param {AskRequest} request */
const askKind = (request) => (request.questions ? 'question' : request.tool_call_id === undefined ? 'approval' : 'permission');

/** What the user has sent, until the server has it. */
export class Outbox {
  constructor() {
    /** @type {Map<string, {prompt: any, givenAt: number, state: string, error: string}>} */
    this.prompts = new Map();
    /** @type {Map<string, {session_id: string, run_id: string, askedAt: number, covered: Map<string, any>|null}>} */
    this.cancels = new Map();
  }

  /** A second tap gives the same id again, and changes nothing.
   * @param {any} prompt @param {number} at @returns {Command[]} */
  give(prompt, at) {
    const known = this.prompts.get(prompt.run_id);
    if (known && known.state !== 'refused') return [];
    this.prompts.set(prompt.run_id, { prompt, givenAt: at, state: 'sending', error: '' });
    return [{ command: 'send_prompt', run_id: prompt.run_id }];
  }

  /** @param {any} receipt */
  accepted(receipt) {
    const sent = this.prompts.get(receipt.run_id);
    if (!OPEN_STATES.has(receipt.state)) this.prompts.delete(receipt.run_id);
    else if (sent) { sent.state = 'accepted'; sent.error = ''; }
  }

  /** @param {string} runId @param {string} message */
  refused(runId, message) {
    const sent = this.prompts.get(runId);
    if (sent) { sent.state = 'refused'; sent.error = message; }
  }

  /** @param {string} sessionId @param {string} runId @param {number} at @returns {Command[]} */
  cancel(sessionId, runId, at) {
    const key = `${sessionId} ${runId}`;
    if (this.cancels.has(key)) return [];
    this.cancels.set(key, { session_id: sessionId, run_id: runId, askedAt: at, covered: null });
    return [{ command: 'send_cancel', session_id: sessionId, run_id: runId }];
  }

  /** @param {string} sessionId @param {string} runId @param {any} receipt @param {Set<string>} openRuns */
  cancelAnswered(sessionId, runId, receipt, openRuns) {
    const cancel = this.cancels.get(`${sessionId} ${runId}`);
    const covered = new Map(receipt.covered.filter((/** @type {any} */ one) => openRuns.has(one.run_id))
      .map((/** @type {any} */ one) => [one.run_id, one]));
    if (cancel && covered.size) cancel.covered = covered;
    else this.cancels.delete(`${sessionId} ${runId}`);
  }

  /** There is a run: its prompt is not on its way any more, and a cancel may be over. @param {Run} run */
  runKnown(run) {
    this.prompts.delete(run.run_id);
    if (!hasEnded(run)) return;
    for (const [key, cancel] of [...this.cancels]) {
      if (cancel.covered?.delete(run.run_id) && !cancel.covered.size) this.cancels.delete(key);
    }
  }

  /** What got no answer is sent again, where twice is the same as once. @returns {Command[]} */
  connected() {
    /** @type {Command[]} */
    const commands = [];
    for (const [id, sent] of this.prompts) if (sent.state === 'sending') commands.push({ command: 'send_prompt', run_id: id });
    for (const [key, cancel] of [...this.cancels]) {
      if (cancel.covered === null && cancel.run_id) {
        commands.push({ command: 'send_cancel', session_id: cancel.session_id, run_id: cancel.run_id });
      } else if (cancel.covered === null) this.cancels.delete(key);
    }
    return commands;
  }

  /** @param {string} sessionId */
  dropSession(sessionId) {
    for (const [id, sent] of [...this.prompts]) if (sent.prompt.session_id === sessionId) this.prompts.delete(id);
    for (const [key, cancel] of [...this.cancels]) if (cancel.session_id === sessionId) this.cancels.delete(key);
  }
}
