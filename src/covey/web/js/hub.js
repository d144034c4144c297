// One stream for all tabs: this runs in a SharedWorker, or in the page where there is none. Without DOM.

import { Api, ApiError, randomId } from './api.js';
import { EventStream } from './stream.js';

const SHOWN_MS = 32;
const HIDDEN_MS = 1_000;

/**
 * @typedef {{postMessage: (message: any) => void, onmessage?: any}} Port
 * @typedef {{port: Port, isHidden: boolean, frames: import('./sse.js').Frame[], timer: any, wantsActivity: boolean}} Tab
 */

/** The stream of one workspace, and the tabs that follow it. */
class Room {
  /** @param {Hub} hub @param {string} workspaceId @param {string} path @param {string} name */
  constructor(hub, workspaceId, path, name) {
    this.hub = hub;
    this.api = new Api(hub.token);
    this.api.clientId = hub.clientId;
    this.api.workspaceId = workspaceId;
    this.path = path;
    this.name = name;
    /** @type {Set<Tab>} */
    this.tabs = new Set();
    /** Who is here, as the stream said it: a tab that comes later is told too. @type {Map<string, import('./sse.js').Frame>} */
    this.present = new Map();
    this.stream = new EventStream({
      open: (lastId) => this.#open(lastId),
      onOpen: () => this.#all(this.#connected()),
      onFrames: (frames) => { this.#note(frames); for (const tab of this.tabs) hub.hand(tab, frames); },
      onLost: (why) => { this.present.clear(); this.#all({ type: 'disconnected', why }); },
      onRefused: (error) => { this.hub.leave(this); this.#all({ type: 'refused', status: error.status, code: error.code, message: error.message }); },
    });
  }

  #connected() { return { type: 'connected', clientId: this.hub.clientId, workspaceId: this.api.workspaceId, path: this.path }; }

  /** @param {import('./sse.js').Frame[]} frames */
  #note(frames) {
    for (const frame of frames) {
      if (!frame.data.startsWith('{"type":"presence"')) continue;
      const { client_id: id, attached } = JSON.parse(frame.data).payload.payload;
      if (attached) this.present.set(id, frame); else this.present.delete(id);
    }
  }

  /** Another tab reads along from here on; what was before, it loads. @param {Tab} tab */
  join(tab) {
    this.tabs.add(tab);
    if (!this.stream.isOpen) { this.stream.wake(); return; }
    tab.port.postMessage(this.#connected());
    this.hub.hand(tab, [...this.present.values()]);
  }

  /** Claim the workspace, then attach. @param {string} lastId */
  async #open(lastId) {
    this.api.token = this.hub.token;
    const opened = await this.#claim();
    this.api.workspaceId = opened.id;
    const path = `${this.api.w}/events?deltas=1`;
    const headers = { ...this.api.headers(), ...(lastId ? { 'Last-Event-ID': lastId } : {}) };
    return stream(this.api.url(path), headers);
  }

  /** Whoever knows only the id of a workspace asks for its path first. An id that nobody knows will not become known. */
  async #claim() {
    try {
      if (!this.path) this.path = (await this.api.workspace()).path;
      return await this.api.openWorkspace(this.path, this.name);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'workspace_not_found') throw new ApiError(404, 'no_workspace', 'the server does not know it any more.');
      throw error;
    }
  }

  /** @param {any} message */
  #all(message) { for (const tab of this.tabs) { this.hub.flush(tab); tab.port.postMessage(message); } }
}

/** @param {string} url @param {Record<string, string>} headers */
async function stream(url, headers) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(url, { headers, cache: 'no-store', credentials: 'omit', redirect: 'error' });
  } catch {
    throw new ApiError(0, 'unreachable', 'The server does not answer.');
  }
  if (response.ok) return response;
  const { message = '', code = '' } = await response.json().catch(() => ({}));
  throw new ApiError(response.status, code, message);
}

export class Hub {
  constructor() {
    this.token = '';
    this.clientId = randomId();
    /** @type {Map<string, Room>} */
    this.rooms = new Map();
    /** @type {Map<Port, {tab: Tab, room: Room|undefined}>} */
    this.tabs = new Map();
    /** @type {EventStream|undefined} */
    this.activity = undefined;
  }

  /** @param {Port} port */
  connect(port) {
    port.onmessage = (/** @type {MessageEvent} */ event) => this.#take(port, event.data);
  }

  /** @param {Port} port @param {any} said */
  #take(port, said) {
    const known = this.tabs.get(port);
    switch (said.type) {
      case 'hello': this.#hello(port, said); return;
      case 'bye': this.#bye(port); return;
      case 'wake': for (const room of this.rooms.values()) room.stream.wake(); this.activity?.wake(); return;
      case 'hidden':
        if (!known) return;
        known.tab.isHidden = said.isHidden;
        if (!said.isHidden) this.flush(known.tab);
        return;
      case 'reconnect': known?.room?.stream.restart(said.why); return;
      default:
    }
  }

  /** @param {Port} port @param {{token: string, workspaceId: string, path: string, name: string, activity: boolean}} said */
  #hello(port, said) {
    this.#bye(port);
    if (this.token !== said.token) { // another page signed in: what was opened before has no right any more
      for (const room of [...this.rooms.values()]) this.leave(room);
      this.activity?.close();
      this.activity = undefined;
      this.token = said.token;
    }
    /** @type {Tab} */
    const tab = { port, isHidden: false, frames: [], timer: undefined, wantsActivity: said.activity };
    let room = said.workspaceId || said.path ? this.rooms.get(said.workspaceId || said.path) : undefined;
    if (room) room.join(tab);
    else if (said.workspaceId || said.path) {
      room = new Room(this, said.workspaceId, said.path, said.name);
      this.rooms.set(said.workspaceId || said.path, room);
      room.tabs.add(tab);
    }
    this.tabs.set(port, { tab, room });
    if (said.activity) this.#follow();
  }

  /** @param {Port} port */
  #bye(port) {
    const known = this.tabs.get(port);
    this.tabs.delete(port);
    if (!known) return;
    clearTimeout(known.tab.timer);
    known.room?.tabs.delete(known.tab);
    if (known.room && !known.room.tabs.size) this.leave(known.room);
    if (this.activity && ![...this.tabs.values()].some((each) => each.tab.wantsActivity)) {
      this.activity.close();
      this.activity = undefined;
    }
  }

  /** @param {Room} room */
  leave(room) {
    room.stream.close();
    for (const [key, each] of this.rooms) if (each === room) this.rooms.delete(key);
  }

  /** What goes on in all workspaces, for tabs that show it. It has no past: whoever comes later needs its beginning. */
  #follow() {
    if (this.activity) { this.activity.restart('another tab reads along'); return; }
    const api = new Api(this.token);
    this.activity = new EventStream({
      open: () => stream(api.url('v1/activity'), api.headers()),
      onOpen: () => {},
      onFrames: (frames) => {
        for (const { tab } of this.tabs.values()) if (tab.wantsActivity) tab.port.postMessage({ type: 'activity', frames });
      },
      onLost: () => {},
      onRefused: (error) => { for (const { tab } of this.tabs.values()) tab.port.postMessage({ type: 'refused', status: error.status, code: error.code, message: error.message }); },
    });
  }

  /** Several frames are one message, thirty times a second: drawing costs as much for one word as for ten; once a second to a tab that nobody sees.
   * @param {Tab} tab @param {import('./sse.js').Frame[]} frames */
  hand(tab, frames) {
    for (const frame of frames) tab.frames.push(frame);
    tab.timer ??= setTimeout(() => this.flush(tab), tab.isHidden ? HIDDEN_MS : SHOWN_MS);
  }

  /** @param {Tab} tab */
  flush(tab) {
    clearTimeout(tab.timer);
    tab.timer = undefined;
    if (tab.frames.length) tab.port.postMessage({ type: 'events', frames: tab.frames });
    tab.frames = [];
  }
}
