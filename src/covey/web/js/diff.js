// Unified diffs → rows. All of it is text of strangers, so control and bidi characters are drawn.

import { h } from './dom.js';
import { visible } from './text.js';

const ROWS_AT_ONCE = 400;

/** @typedef {{kind: 'file'|'hunk'|'same'|'added'|'removed'|'note', old: number|null, new: number|null, text: string}} Row */

/** @param {string} diff @returns {Row[]} */
export function diffRows(diff) {
  /** @type {Row[]} */
  const rows = [];
  let before = 0;
  let after = 0;
  // A hunk says how many lines it has: the header of the next file looks like a line that goes and one that comes.
  let goes = 0;
  let comes = 0;
  const named = (diff.match(/^--- .*\n\+\+\+ .*\n@@ /gm) ?? []).length > 1;
  for (const line of diff.replace(/\n$/, '').split('\n')) {
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (hunk) {
      before = Number(hunk[1]);
      goes = Number(hunk[2] ?? 1);
      after = Number(hunk[3]);
      comes = Number(hunk[4] ?? 1);
      rows.push({ kind: 'hunk', old: null, new: null, text: line });
    } else if (line[0] === '\\' && rows.length) rows.push({ kind: 'note', old: null, new: null, text: line.slice(2) });
    else if (goes <= 0 && comes <= 0) {
      if (named && line.startsWith('+++ ')) rows.push({ kind: 'file', old: null, new: null, text: line.slice(4) });
    } else if (line[0] === '+') { comes--; rows.push({ kind: 'added', old: null, new: after++, text: line.slice(1) }); }
    else if (line[0] === '-') { goes--; rows.push({ kind: 'removed', old: before++, new: null, text: line.slice(1) }); }
    else if (line && line[0] !== ' ') { goes = comes = 0; rows.push({ kind: 'note', old: null, new: null, text: line }); } // the rest was left out
    else { goes--; comes--; rows.push({ kind: 'same', old: before++, new: after++, text: line.slice(1) }); }
  }
  return rows;
}

const SIGNS = { added: '+', removed: '−', same: ' ', file: '', hunk: '', note: '' };

/** Rows that stand across both columns. @param {Row} row */
const isHeading = (row) => row.kind === 'hunk' || row.kind === 'file';

/** @typedef {(row: Row, node: HTMLElement) => void} OnRow */

/** A diff in one column. @param {string} diff @param {{onRow?: OnRow, label?: string}} [options] */
export function unifiedDiff(diff, { onRow, label = 'Changes' } = {}) {
  const rows = diffRows(diff);
  const table = h('div.diff', { role: 'group', tabIndex: 0, aria: { label } });
  inPieces(table, rows, (row) => unifiedRow(row, onRow));
  return table;
}

/** @param {Row} row @param {OnRow|undefined} onRow */
function unifiedRow(row, onRow) {
  if (isHeading(row)) return h(`div.row.${row.kind}`, null, h('span.cell', null, visible(row.text)));
  const node = h(`div.row.${row.kind}`, null,
    number(row.old, 'old'), number(row.new, 'new'),
    h('span.sign', null, SIGNS[row.kind]), h('span.cell.text', null, visible(row.text) || ' '));
  onRow?.(row, node);
  return node;
}

/** @param {number|null} value @param {string} which */
const number = (value, which) => h(`span.number.${which}`, null, value === null ? '' : String(value));

/** A diff in two columns. @param {string} diff @param {{onRow?: OnRow, label?: string}} [options] */
export function splitDiff(diff, { onRow, label = 'Changes' } = {}) {
  const table = h('div.diff.split', { role: 'group', tabIndex: 0, aria: { label } });
  inPieces(table, pairs(diffRows(diff)), (pair) => splitRow(pair, onRow));
  return table;
}

/** Removed lines beside those that were added in their place. @param {Row[]} rows @returns {[Row|null, Row|null][]} */
export function pairs(rows) {
  /** @type {[Row|null, Row|null][]} */
  const paired = [];
  /** @type {Row[]} */
  let removed = [];
  const flush = () => { for (const row of removed) paired.push([row, null]); removed = []; };
  for (const row of rows) {
    if (row.kind === 'removed') removed.push(row);
    else if (row.kind === 'added') paired.push([removed.shift() ?? null, row]);
    else { flush(); paired.push([row, row]); }
  }
  flush();
  return paired;
}

/** @param {[Row|null, Row|null]} pair @param {OnRow|undefined} onRow */
function splitRow([left, right], onRow) {
  if (left && left === right && isHeading(left)) return unifiedRow(left, undefined);
  const half = (/** @type {Row|null} */ row, /** @type {'old'|'new'} */ side) => {
    const kind = row ? row.kind : 'empty';
    const node = h(`span.half.${kind}`, null, number(row ? row[side] : null, side), h('span.text', null, row ? visible(row.text) || ' ' : ''));
    if (row && !(side === 'old' && row.kind === 'same')) onRow?.(row, node);
    return node;
  };
  return h('div.row', null, half(left, 'old'), half(right, 'new'));
}

/** The first rows at once, more when they are asked for. @template T @param {HTMLElement} table @param {T[]} items
 * @param {(item: T) => Node} build */
function inPieces(table, items, build) {
  let shown = 0;
  const more = h('button.more', { onclick: () => add() });
  const add = () => {
    more.remove();
    const end = Math.min(items.length, shown + ROWS_AT_ONCE);
    for (; shown < end; shown++) table.append(build(/** @type {T} */ (items[shown])));
    if (shown < items.length) {
      more.textContent = `Show ${Math.min(ROWS_AT_ONCE, items.length - shown)} of ${items.length - shown} more lines`;
      table.append(more);
    }
  };
  add();
}
