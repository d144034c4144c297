// Text for people: times, sizes, and characters that would deceive them. Without DOM, but for what it is told.

/** What does not show, or turns what follows around. */
// eslint-disable-next-line no-control-regex
const DECEIVING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\udb40][\udc00-\udfff]/g;

/** Control and bidi characters as signs that can be seen: for commands, paths and diffs. @param {string} text */
export function visible(text) {
  return text.replace(DECEIVING, (found) => `⟨U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

/** @param {string} text */
export const oneLine = (text) => visible(text.replace(/\s+/g, ' ').trim());

/** @param {number} count @param {string} one @param {string} [many] */
export const counted = (count, one, many = `${one}s`) => `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

/** @param {number} seconds */
export function lasted(seconds) {
  if (seconds < 10 && !Number.isInteger(seconds)) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long ago, in a few letters. @param {number} at unix seconds */
export function ago(at) {
  const seconds = Math.max(0, Date.now() / 1000 - at);
  if (seconds < 60) return 'now';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * 86400) return `${Math.floor(seconds / 86400)} d`;
  return new Date(at * 1000).toLocaleDateString('en', { month: 'short', day: 'numeric' });
}

/** The same, within a sentence. @param {number} at */
export const since = (at) => ago(at).replace(/^now$/, 'just now').replace(/ (min|h|d)$/, ' $1 ago');

/** @param {number} dollars */
export const money = (dollars) => (dollars === 0 ? '$0' : dollars < 0.01 ? '<$0.01' : `$${dollars.toFixed(2)}`);

/** @param {number} count */
export function thousands(count) {
  if (count < 1000) return String(count);
  return count < 1e6 ? `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}

/** A path below the workspace, from there. @param {unknown} path @param {string} root */
export function shortPath(path, root) {
  const text = String(path ?? '');
  const base = `${root.replace(/\/$/, '')}/`;
  return oneLine(root && text.startsWith(base) ? text.slice(base.length) : text);
}

/** The last name in a path. @param {string} path */
export const baseName = (path) => oneLine(path.split('/').filter(Boolean).at(-1) ?? path);

/** The fragment that leads to a workspace, a session, a message. @param {string} workspace @param {string} [session] @param {string} [message] */
export const addressOf = (workspace, session, message) => `#/w/${encodeURIComponent(workspace)}${session ? `/s/${encodeURIComponent(session)}` : ''}${message ? `/${encodeURIComponent(message)}` : ''}`;

/** What a table has by a name that a model chose, which may be one that every object has. @template T @param {Record<string, T>} table @param {string} name */
export const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);

/** JSON that a model wrote, as far as it can be read. @param {string} text @returns {Record<string, any>} */
export function decoded(text) {
  try {
    const found = JSON.parse(text || '{}');
    return found && typeof found === 'object' && !Array.isArray(found) ? found : {};
  } catch { return {}; }
}

// ── terminal text: colours become classes, everything else of a terminal is dropped ──

// eslint-disable-next-line no-control-regex
const SEQUENCE = /\u001b(?:\[([0-9;:]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])|\u009b([0-9;:]*)([@-~])/g;
const CODES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

/** Pieces of text with the classes of their colours. @param {string} text @returns {{text: string, classes: string}[]} */
export function terminalPieces(text) {
  /** @type {{text: string, classes: string}[]} */
  const pieces = [];
  const style = { bold: false, dim: false, color: '' };
  let at = 0;
  const put = (/** @type {string} */ raw) => {
    const shown = visible(overwritten(raw));
    const classes = [style.bold && 'ansi-bold', style.dim && 'ansi-dim', style.color && `ansi-${style.color}`].filter(Boolean).join(' ');
    if (shown) pieces.push({ text: shown, classes });
  };
  for (const found of text.matchAll(SEQUENCE)) {
    put(text.slice(at, found.index));
    at = found.index + found[0].length;
    if ((found[2] ?? found[4]) === 'm') restyle(style, found[1] ?? found[3] ?? '');
  }
  put(text.slice(at));
  return pieces;
}

/** A line that was drawn over itself, such as a progress bar, is what it became in the end. @param {string} text */
const overwritten = (text) => text.replace(/\r\n/g, '\n').replace(/[^\n]*\r(?!\n|$)/g, '').replace(/\r/g, '');

/** @param {{bold: boolean, dim: boolean, color: string}} style @param {string} codes */
function restyle(style, codes) {
  const numbers = codes.split(/[;:]/).map(Number);
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i] ?? 0;
    if (code === 0) Object.assign(style, { bold: false, dim: false, color: '' });
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 22) Object.assign(style, { bold: false, dim: false });
    else if (code === 39) style.color = '';
    else if (code === 38 || code === 48) i += numbers[i + 1] === 5 ? 2 : 4;
    else if (code >= 30 && code <= 37) style.color = CODES[code - 30] ?? '';
    else if (code >= 90 && code <= 97) style.color = CODES[code - 90] ?? '';
  }
}
