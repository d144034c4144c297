// Messages that grow: message + delta → message. Offsets count code points, which JavaScript does not.
// Without DOM; a part of the small client (docs/PAGE.md).

/** @typedef {import('./types.js').Message} Message */
/** @typedef {import('./types.js').Part} Part */
/** @typedef {import('./types.js').MessageDelta} MessageDelta */

/** @type {Record<string, string>} */
const TEXT_OF = { text: 'text', reasoning: 'thinking', tool_call: 'input' };
/** @type {Record<string, string>} */
const KIND_OF = { text: 'text', reasoning: 'reasoning', tool_call: 'tool_input' };
const KNOWN = new Set([
  'text', 'reasoning', 'tool_call', 'tool_result', 'image_url', 'binary', 'shell_command', 'finish',
]);

/** How many code points a string has.
 * @param {string} text */
export function codePoints(text) {
  let count = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00 && i + 1 < text.length) { count--; i++; }
  }
  return count;
}

/** The string without its first code points.
 * @param {string} text @param {number} count */
export function afterCodePoints(text, count) {
  let i = 0;
  for (; count > 0 && i < text.length; count--) i += (text.codePointAt(i) ?? 0) > 0xffff ? 2 : 1;
  return text.slice(i);
}

/** How the message ended; undefined while it is being written.
 * @param {Message} message */
export function finishOf(message) {
  const last = message.parts[message.parts.length - 1];
  return last && last.type === 'finish' ? last.data : undefined;
}

/** A part of a type that is not known is an empty text: it keeps its place, which deltas count.
 * @param {Message} message @returns {Message} */
export function withKnownParts(message) {
  if (message.parts.every((part) => KNOWN.has(part.type))) return message;
  const parts = message.parts.map((part) => (KNOWN.has(part.type) ? part : { type: 'text', data: { text: '' } }));
  return { ...message, parts };
}

/** The messages of a session, in the order in which they began. */
export class Transcript {
  constructor() {
    /** @type {Map<string, {message: Message, lengths: (number|undefined)[]}>} */
    this.entries = new Map();
  }

  /** @param {string} id */
  get(id) { return this.entries.get(id)?.message; }

  get firstId() { return this.entries.keys().next().value ?? ''; }

  /** @returns {Message[]} */
  list() { return [...this.entries.values()].map((entry) => entry.message); }

  /** A whole message replaces what was known of it, in its place. @param {Message} message */
  put(message) { this.entries.set(message.id, { message: withKnownParts(message), lengths: [] }); }

  /** @param {string} id */
  pop(id) {
    const entry = this.entries.get(id);
    this.entries.delete(id);
    return entry;
  }

  /** These are all; what is known of those in `newer` is newer than what is given.
   * @param {Message[]} messages @param {Set<string>} newer */
  load(messages, newer) {
    const known = this.entries;
    this.entries = new Map();
    for (const message of messages) {
      const old = known.get(message.id);
      if (!newer.has(message.id)) this.put(message);
      else if (old) this.entries.set(message.id, old);
    }
    for (const [id, entry] of known) if (newer.has(id)) this.entries.set(id, entry);
  }

  /** These come before all that are known. @param {Message[]} messages @param {Set<string>} newer */
  prepend(messages, newer) {
    const known = this.entries;
    this.entries = new Map();
    for (const message of messages) if (!known.has(message.id) && !newer.has(message.id)) this.put(message);
    for (const [id, entry] of known) this.entries.set(id, entry);
  }

  /** Grow a message. Gives what was not known before; undefined: it does not fit, since something is missing.
   * @param {MessageDelta} delta @returns {string|undefined} */
  grow(delta) {
    const entry = this.entries.get(delta.message_id);
    if (!entry) return undefined;
    const { message, lengths } = entry;
    if (finishOf(message)) return ''; // it is complete: whatever comes late is not new
    let part = message.parts[delta.part];
    if (!part && delta.part === message.parts.length && delta.offset === 0) part = begun(message, delta);
    if (!part || KIND_OF[part.type] !== delta.kind) return undefined;
    const field = TEXT_OF[part.type] ?? '';
    const length = lengths[delta.part] ?? codePoints(part.data[field]);
    if (delta.offset < 0 || delta.offset > length) return undefined;
    const fresh = delta.offset === length ? delta.delta : afterCodePoints(delta.delta, length - delta.offset);
    part.data[field] += fresh;
    lengths[delta.part] = length + codePoints(fresh);
    return fresh;
  }
}

/** @param {Message} message @param {MessageDelta} delta @returns {Part|undefined} */
function begun(message, delta) {
  /** @type {Part|undefined} */
  const part = delta.kind === 'text' ? { type: 'text', data: { text: '' } }
    : delta.kind === 'reasoning' ? { type: 'reasoning', data: { thinking: '', signature: '' } } : undefined;
  if (part) message.parts = [...message.parts, part];
  return part;
}
