// Loads of a view that are under way. An answer is as old as the moment in which the server read it: what events have
// touched since it was asked for stays as the events have it. Without DOM.

/** @typedef {import('./types.js').Command} Command */

/** Loads under way, and what events have changed meanwhile. */
export class Loads {
  constructor() {
    this.count = 0;
    /** @type {Map<string, {command: Command, touched: Set<string>}>} */
    this.open = new Map();
  }

  /** @param {string} kind @param {string} sessionId */
  static key(kind, sessionId = '') { return `${kind} ${sessionId}`.trim(); }

  /** @param {string} kind @param {Partial<Command>} more @returns {Command} */
  begin(kind, more = {}) {
    const command = { command: kind, load: ++this.count, ...more };
    this.open.set(Loads.key(kind, command.session_id), { command, touched: new Set() });
    return command;
  }

  /** @param {string} kind @param {string} sessionId */
  find(kind, sessionId = '') { return this.open.get(Loads.key(kind, sessionId))?.command; }

  /** @param {string} sessionId */
  isLoading(sessionId) {
    const command = this.find('load_messages', sessionId);
    return Boolean(command && !command.before);
  }

  /** An event changed this. @param {string} kind @param {string} id @param {string} sessionId */
  touch(kind, id, sessionId = '') {
    if (!this.open.size) return;
    this.open.get(kind)?.touched.add(id);
    if (sessionId) this.open.get(Loads.key(kind, sessionId))?.touched.add(id);
  }

  /** @param {string} kind @param {number} number */
  end(kind, number) {
    for (const [key, load] of this.open) {
      if (load.command.command === kind && load.command.load === number) { this.open.delete(key); return load; }
    }
    return undefined;
  }

  /** @param {string} sessionId */
  dropSession(sessionId) {
    if (!sessionId) return;
    for (const kind of ['load_messages', 'load_runs']) this.open.delete(Loads.key(kind, sessionId));
  }

  /** All that is under way, once more under new numbers. */
  again() {
    const commands = [...this.open.values()].map((load) => load.command);
    this.open.clear();
    return commands.map(({ command, load: _, ...more }) => this.begin(command, more));
  }
}
