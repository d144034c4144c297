// Colours for code without a node for each word: a scanner of linear expressions, and CSS custom highlights.

const LINES_MAX = 2_000;

const C_LIKE = 'async await break case catch class const continue default delete do else enum export extends false finally for from '
  + 'function if implements import in instanceof interface let new null of package private protected public return static super switch '
  + 'this throw true try type typeof undefined var void while yield abstract final int long double float char bool boolean struct '
  + 'namespace template using virtual override fn impl pub mut use mod match trait where self Self crate go func defer chan range map '
  + 'select fallthrough goto val fun object when is as val lateinit guard extension protocol unsigned signed short sizeof typedef';
const PYTHON = 'and as assert async await break class continue def del elif else except False finally for from global if import in is '
  + 'lambda None nonlocal not or pass raise return True try while with yield match case self';
const SHELL = 'if then else elif fi for while until do done case esac in function return export local set unset exit echo cd source';
const SQL = 'select from where and or not insert into values update set delete create table index drop alter join left right inner outer '
  + 'on group by order having limit union all as distinct null is primary key foreign references default begin commit';
const RUBY = 'def end if elsif else unless while until do begin rescue ensure class module return yield nil true false self and or not '
  + 'require attr_accessor puts then case when in local function repeat';

/** @param {string} words */
const set = (words) => new Set(words.split(' '));
const slashes = String.raw`\/\/[^\n]*|\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/)?`;
const hashes = String.raw`#[^\n]*`;
const dashes = String.raw`--[^\n]*`;
const quotes = String.raw`"(?:[^"\\\n]|\\[^\n])*"?|'(?:[^'\\\n]|\\[^\n])*'?`;
const backticks = '`(?:[^`\\\\]|\\\\[^])*`?';
const triple = String.raw`"""[^"]*(?:"(?!"")[^"]*)*(?:""")?|'''[^']*(?:'(?!'')[^']*)*(?:''')?`;
const rest = String.raw`|\b(\d[\w.]*)|([A-Za-z_$][\w$]*)`;

/** @param {string} comments @param {string} strings */
const scanner = (comments, strings) => new RegExp(`(${comments})|(${strings})${rest}`, 'g');

/** @type {Record<string, {scan: RegExp, words: Set<string>}>} */
const FAMILIES = {
  c: { scan: scanner(slashes, `${quotes}|${backticks}`), words: set(C_LIKE) },
  python: { scan: scanner(hashes, `${triple}|${quotes}`), words: set(PYTHON) },
  shell: { scan: scanner(hashes, quotes), words: set(SHELL) },
  sql: { scan: scanner(dashes, quotes), words: set(SQL) },
  ruby: { scan: scanner(`${hashes}|${dashes}`, quotes), words: set(RUBY) },
  data: { scan: scanner(hashes, quotes), words: set('true false null yes no on off') },
};
/** @type {Record<string, string>} */
const LANGUAGES = Object.fromEntries([
  ...'js jsx ts tsx javascript typescript c h cpp cc hpp c++ java kotlin kt swift go rust rs csharp cs php scala dart css scss zig'.split(' ').map((name) => [name, 'c']),
  ...'py python pyi'.split(' ').map((name) => [name, 'python']),
  ...'sh bash zsh shell console fish make makefile dockerfile'.split(' ').map((name) => [name, 'shell']),
  ...'sql sqlite postgres'.split(' ').map((name) => [name, 'sql']),
  ...'rb ruby lua elixir ex perl pl r'.split(' ').map((name) => [name, 'ruby']),
  ...'json yaml yml toml ini conf'.split(' ').map((name) => [name, 'data']),
]);

/** The words of a text that have a colour. @param {string} text @param {string} language
 * @returns {{kind: string, from: number, to: number}[]} */
export function scan(text, language) {
  const family = LANGUAGES[language.toLowerCase()];
  if (!family || text.split('\n', LINES_MAX + 1).length > LINES_MAX) return [];
  const { scan: pattern, words } = /** @type {{scan: RegExp, words: Set<string>}} */ (FAMILIES[family]);
  const found = [];
  for (const match of text.matchAll(pattern)) {
    const from = match.index;
    const to = from + match[0].length;
    const word = match[4];
    if (match[1]) found.push({ kind: 'comment', from, to });
    else if (match[2]) found.push({ kind: 'string', from, to });
    else if (match[3]) found.push({ kind: 'number', from, to });
    else if (word && words.has(family === 'sql' ? word.toLowerCase() : word)) found.push({ kind: 'keyword', from, to });
    else if (word && text[to] === '(') found.push({ kind: 'call', from, to });
  }
  return found;
}

/** @type {Map<string, any>} */
const registered = new Map();
/** @type {WeakMap<Element, {node: Text, language: string}>} */
const known = new WeakMap();
/** What is coloured now, by the element. @type {Map<Element, [any, StaticRange][]>} */
const coloured = new Map();
/** @type {Set<Element>} */
const waiting = new Set();
const idle = globalThis.requestIdleCallback ?? ((/** @type {() => void} */ work) => setTimeout(work, 50));

/** Only what is near the screen has colours: a browser goes through all of them with each frame, also for a key press. */
const watcher = 'highlights' in CSS ? new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) forget(target);
    else if (!waiting.size) idle(work);
    if (isIntersecting) waiting.add(target);
  }
}, { rootMargin: '300px' }) : null;

/** Colour code when there is time, and when it is seen. @param {Text} node @param {string} info */
export function highlightLater(node, info) {
  const language = /^[\w+#.-]+/.exec(info)?.[0] ?? '';
  if (!LANGUAGES[language.toLowerCase()] || !node.parentElement) return;
  known.set(node.parentElement, { node, language });
  watcher?.observe(node.parentElement);
}

function work() {
  const [next] = waiting;
  if (!next) return;
  waiting.delete(next);
  const found = known.get(next);
  if (found && next.isConnected && !coloured.has(next)) {
    const { node, language } = found;
    coloured.set(next, scan(node.data, language).map(({ kind, from, to }) => {
      const range = new StaticRange({ startContainer: node, startOffset: from, endContainer: node, endOffset: to });
      of(kind).add(range);
      return [of(kind), range];
    }));
  }
  if (waiting.size) idle(work);
}

/** @param {string} kind */
function of(kind) {
  let highlight = registered.get(kind);
  if (!highlight) {
    const Highlight = /** @type {any} */ (globalThis).Highlight;
    registered.set(kind, highlight = new Highlight());
    /** @type {any} */ (CSS).highlights.set(`code-${kind}`, highlight);
  }
  return highlight;
}

/** It went out of sight, or out of the document. @param {Element} code */
function forget(code) {
  waiting.delete(code);
  for (const [highlight, range] of coloured.get(code) ?? []) highlight.delete(range);
  coloured.delete(code);
}
