// One stream of events that connects again for ever. Without DOM; a part of the small client (docs/PAGE.md).

import { ApiError } from './api.js';
import { SseParser } from './sse.js';

const FIRST_MS = 250;
const LONGEST_MS = 8_000;
const SILENT_MS = 35_000;
/** The server says something each 15 s: two were missed, whatever the socket claims. */
const DOUBTFUL_MS = 17_000;
/** After waking up: one was missed, so the connection is made again at once. */
const LOOK_MS = 5_000;

/**
 * @typedef {object} StreamOptions
 * @property {(lastId: string) => Promise<Response>} open   the request; throws ApiError
 * @property {() => void} onOpen
 * @property {(frames: import('./sse.js').Frame[]) => void} onFrames
 * @property {(why: string) => void} onLost
 * @property {(error: ApiError) => void} onRefused   no waiting will change this; the stream has ended
 */

export class EventStream {
  /** @param {StreamOptions} options */
  constructor(options) {
    this.options = options;
    this.lastId = '';
    this.isOpen = false;
    this.isOver = false;
    this.attempts = 0;
    this.heardAt = 0;
    this.generation = 0;
    /** @type {ReadableStreamDefaultReader<Uint8Array>|undefined} */
    this.reader = undefined;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this.timer = undefined;
    this.watch = setInterval(() => this.#look(SILENT_MS), LOOK_MS);
    void this.#connect();
  }

  close() {
    this.isOver = true;
    clearInterval(this.watch);
    clearTimeout(this.timer);
    this.#drop();
  }

  /** Somebody looks: connect now if it waits, and do not believe a socket that has been silent. */
  wake() {
    if (this.isOver) return;
    if (this.isOpen) this.#look(DOUBTFUL_MS);
    else if (this.timer !== undefined) { clearTimeout(this.timer); this.attempts = 0; void this.#connect(); }
  }

  /** Connect again from the last id: text is missing, or somebody new reads along. @param {string} why */
  restart(why) {
    if (this.isOver) return;
    this.#lose(why, 0);
  }

  /** @param {number} bound */
  #look(bound) { if (this.isOpen && Date.now() - this.heardAt > bound) this.#lose('the connection has been silent', 0); }

  #drop() {
    this.generation++;
    this.isOpen = false;
    void this.reader?.cancel().catch(() => {});
    this.reader = undefined;
  }

  /** @param {string} why @param {number} [delay] */
  #lose(why, delay) {
    const wasOpen = this.isOpen;
    this.#drop();
    if (wasOpen) this.options.onLost(why);
    const backOff = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(this.attempts++, 6)) * (0.5 + Math.random() / 2);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.#connect(), delay ?? backOff);
  }

  async #connect() {
    this.timer = undefined;
    const generation = ++this.generation;
    try {
      const response = await this.options.open(this.lastId);
      if (generation !== this.generation || !response.body) { void response.body?.cancel(); return; }
      this.reader = response.body.getReader();
      this.isOpen = true;
      this.heardAt = Date.now();
      this.options.onOpen();
      await this.#read(this.reader, generation);
      if (generation === this.generation) this.#lose('the server ended it');
    } catch (error) {
      if (generation !== this.generation || this.isOver) return;
      if (error instanceof ApiError && !error.isPassing && error.status < 500) {
        this.close();
        this.options.onRefused(error);
      } else this.#lose(error instanceof Error ? error.message : String(error));
    }
  }

  /** @param {ReadableStreamDefaultReader<Uint8Array>} reader @param {number} generation */
  async #read(reader, generation) {
    const parser = new SseParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || generation !== this.generation) return;
      this.heardAt = Date.now();
      const frames = parser.feed(value);
      if (!frames.length) continue;
      this.attempts = 0;
      const last = frames.findLast((frame) => frame.id);
      if (last) this.lastId = last.id;
      this.options.onFrames(frames);
    }
  }
}
