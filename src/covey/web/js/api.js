// One function for each route that the page uses. Without DOM; a part of the small client (docs/PAGE.md).

/** What the server answered instead of what was asked for; status 0: it did not answer. */
export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** The same request may well succeed a little later. */
  get isPassing() {
    return this.status === 0 || this.status === 503 || ['workspace_not_found', 'workspace_closing'].includes(this.code);
  }
}

/** Where the server is, seen from these files: `web/<hash>/js/` lies below it, at any prefix. */
export const BASE = new URL('../../../', import.meta.url).href;

const ANSWER_MS = 30_000;

/** A random id: plain http from another machine has no `randomUUID`. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (/** @type {number} */ (bytes[6]) & 0x0f) | 0x40;
  bytes[8] = (/** @type {number} */ (bytes[8]) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** @param {Record<string, string|number|boolean|undefined>} values */
function query(values) {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return entries.length ? `?${new URLSearchParams(entries.map(([name, value]) => [name, String(value)]))}` : '';
}

/** @param {string} text */
const part = (text) => encodeURIComponent(text);

export class Api {
  /** @param {string} token @param {string} base */
  constructor(token, base = BASE) {
    this.token = token;
    this.base = base;
    this.clientId = '';
    this.workspaceId = '';
    /** @type {(error: ApiError) => void} */
    this.onRefused = () => {};
  }

  /** @param {string} path */
  url(path) {
    const whole = new URL(path, this.base);
    if (this.clientId) whole.searchParams.set('client_id', this.clientId);
    return whole.href;
  }

  /** @returns {Record<string, string>} */
  headers() { return this.token ? { Authorization: `Bearer ${this.token}` } : {}; }

  /** @param {string} method @param {string} path @param {any} body @returns {Promise<Response>} */
  async send(method, path, body = undefined) {
    /** @type {Response} */
    let response;
    try {
      response = await fetch(this.url(path), {
        method, cache: 'no-store', credentials: 'omit', redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS),
        headers: { ...this.headers(), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      throw new ApiError(0, 'unreachable', 'The server does not answer.');
    }
    if (response.ok) return response;
    const refusal = await errorOf(response);
    if (refusal.status === 401 && this.token) this.onRefused(refusal);
    throw refusal;
  }

  /** @param {string} method @param {string} path @param {any} body @returns {Promise<any>} */
  async call(method, path, body = undefined) {
    const text = await (await this.send(method, path, body)).text();
    return text ? JSON.parse(text) : null;
  }

  get w() { return `v1/workspaces/${part(this.workspaceId)}`; }
  /** @param {string} id */
  session(id) { return `${this.w}/sessions/${part(id)}`; }
  /** @param {string} id */
  lane(id) { return `${this.w}/agent/sessions/${part(id)}`; }

  // ── the server ──
  /** @param {string} code @param {string} name */
  redeem(code, name) { return this.call('POST', 'v1/web/sessions', { code, name }); }
  signOut() { return this.call('POST', 'v1/web/sign-out'); }
  version() { return this.call('GET', 'v1/version'); }
  workspaces() { return this.call('GET', 'v1/workspaces'); }
  allRuns(limit = 200) { return this.call('GET', `v1/runs${query({ limit })}`); }
  stats(days = 30) { return this.call('GET', `v1/stats${query({ days })}`); }
  /** @param {string} q */
  searchEverywhere(q) { return this.call('GET', `v1/search${query({ q, limit: 50 })}`); }
  /** @param {string} path @param {string} name */
  openWorkspace(path, name) {
    return this.call('POST', 'v1/workspaces', { path, client_id: this.clientId, client_name: name, client_kind: 'web' });
  }

  // ── the workspace ──
  /** Its view, also of one that was released: whoever knows its id opens it again. */
  async workspace() {
    try {
      return await this.call('GET', this.w);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'workspace_released') throw error;
      await this.call('GET', `${this.w}/sessions${query({ limit: 1 })}`);
      return this.call('GET', this.w);
    }
  }
  sessions() { return this.call('GET', `${this.w}/sessions${query({ children: 1, archived: 1 })}`); }
  /** @param {string} id */
  oneSession(id) { return this.call('GET', this.session(id)); }
  /** @param {string} title */
  createSession(title = '') { return this.call('POST', `${this.w}/sessions`, { title }); }
  /** @param {string} id @param {any} change */
  updateSession(id, change) { return this.call('PUT', this.session(id), change); }
  /** @param {string} id */
  deleteSession(id) { return this.call('DELETE', this.session(id)); }
  /** @param {string} id @param {string} before @param {number} limit */
  messages(id, before, limit) { return this.call('GET', `${this.session(id)}/messages${query({ before, limit })}`); }
  /** @param {{session_id?: string, state?: string, limit?: number}} which */
  runs(which) { return this.call('GET', `${this.w}/runs${query(which)}`); }
  permissions() { return this.call('GET', `${this.w}/permissions`); }
  questions() { return this.call('GET', `${this.w}/questions`); }
  approvals() { return this.call('GET', `${this.w}/approvals`); }
  /** @param {string} id @param {boolean} approve */
  approve(id, approve) { return this.call('POST', `${this.w}/approvals/answer`, { id, approve }); }
  /** @param {string} workspaceId */
  extensions(workspaceId) { return this.call('GET', `v1/workspaces/${part(workspaceId)}/extensions`); }
  /** @param {string} id */
  showSession(id) { return this.call('POST', `${this.w}/current-session`, { session_id: id }); }
  /** @param {string} q */
  search(q) { return this.call('GET', `${this.w}/search${query({ q, limit: 50 })}`); }
  /** @param {string} q */
  files(q) { return this.call('GET', `${this.w}/files${query({ q, limit: 50 })}`); }
  /** @param {string} path */
  fileContent(path) { return this.call('GET', `${this.w}/files/content${query({ path })}`); }
  commands() { return this.call('GET', `${this.w}/commands`); }
  jobs() { return this.call('GET', `${this.w}/jobs`); }
  /** @param {string} id */
  job(id) { return this.call('GET', `${this.w}/jobs/${part(id)}`); }
  /** @param {string} id */
  killJob(id) { return this.call('POST', `${this.w}/jobs/${part(id)}/kill`); }
  /** @param {boolean} skip */
  skipPermissions(skip) { return this.call('POST', `${this.w}/permissions/skip`, { skip }); }

  // ── runs ──
  /** @param {any} prompt */
  post(prompt) { return this.call('POST', `${this.w}/agent`, prompt); }
  /** @param {string} id */
  cancelSession(id) { return this.call('POST', `${this.lane(id)}/cancel`); }
  /** @param {string} runId */
  cancelRun(runId) { return this.call('POST', `${this.w}/runs/${part(runId)}/cancel`); }
  /** @param {string} id @param {string} runId @param {any} change */
  editPrompt(id, runId, change) { return this.call('PATCH', `${this.lane(id)}/prompts/${part(runId)}`, change); }
  /** @param {string} id @param {string} runId */
  dropPrompt(id, runId) { return this.call('DELETE', `${this.lane(id)}/prompts/${part(runId)}`); }
  /** @param {string} id @param {string} focus */
  summarize(id, focus = '') { return this.call('POST', `${this.lane(id)}/summarize`, { focus }); }
  /** @param {any} grant */
  grant(grant) { return this.call('POST', `${this.w}/permissions/grant`, grant); }
  /** @param {string} batch @param {any[]} responses */
  answer(batch, responses) {
    return responses.length
      ? this.call('POST', `${this.w}/questions/answer`, { batch_request_id: batch, responses })
      : this.call('POST', `${this.w}/questions/cancel`, { batch_request_id: batch });
  }
  /** @param {string} id @param {any} request */
  undo(id, request) { return this.call('POST', `${this.session(id)}/undo`, request); }
  /** @param {string} id @param {any} request */
  fork(id, request) { return this.call('POST', `${this.session(id)}/fork`, request); }
  /** @param {string} id @param {{run_id?: string, after?: string, limit?: number, diffs?: number}} which */
  changes(id, which = {}) { return this.call('GET', `${this.session(id)}/changes${query(which)}`); }
  /** @param {string} id @param {string} format */
  async export(id, format) { return (await this.send('GET', `${this.session(id)}/export${query({ format })}`)).blob(); }
}

/** @param {Response} response */
async function errorOf(response) {
  try {
    const { message, code } = await response.json();
    return new ApiError(response.status, String(code), String(message));
  } catch {
    return new ApiError(response.status, 'bad_answer', `The server answered ${response.status}.`);
  }
}
