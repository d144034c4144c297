// Bytes of a stream of Server-Sent Events → frames. Without DOM; a part of the small client (docs/PAGE.md).

/** @typedef {{id: string, data: string}} Frame */

/** Takes bytes as they come: lines end with LF, CR LF or CR, and characters may be cut anywhere. */
export class SseParser {
  constructor() {
    this.decoder = new TextDecoder();
    this.rest = '';
    this.id = '';
    /** @type {string[]} */
    this.data = [];
  }

  /** @param {Uint8Array} bytes @returns {Frame[]} */
  feed(bytes) {
    /** @type {Frame[]} */
    const frames = [];
    const text = this.rest + this.decoder.decode(bytes, { stream: true });
    let start = 0;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit !== 10 && unit !== 13) continue;
      if (unit === 13 && i + 1 === text.length) break; // whether a LF follows, the next bytes say
      this.#line(text.slice(start, i), frames);
      if (unit === 13 && text.charCodeAt(i + 1) === 10) i++;
      start = i + 1;
    }
    this.rest = text.slice(start);
    return frames;
  }

  /** @param {string} line @param {Frame[]} frames */
  #line(line, frames) {
    if (!line) {
      if (this.data.length) frames.push({ id: this.id, data: this.data.join('\n') });
      this.id = '';
      this.data = [];
      return;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') this.data.push(value);
    else if (field === 'id' && !value.includes('\0')) this.id = value;
  }
}
