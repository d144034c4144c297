// Markdown → nodes. Blocks that are closed become nodes once; only the open rest is parsed again while it grows.

import MarkdownIt from '../vendor/markdown-it-15.0.3.mjs';
import { h } from './dom.js';
import { highlightLater } from './highlight.js';
import { chip, linkTo } from './links.js';

const md = new MarkdownIt({ maxNesting: 20 }); // only its parsers; every link is ours to judge, when it becomes a node

const TAIL_MAX = 16 * 1024;
/** An open block that is longer is shown as plain text until it closes. */
const BLOCK_MAX = 32 * 1024;
/** A block that is longer, other than code, stays plain text: no input takes long. */
const BARE = /https?:\/\/[^\s<>"'`]+[^\s<>"'`.,;:!?)\]}]/g;
const FENCE_END = /^ {0,3}(`{3,}|~{3,})[ \t]*$/;
/** @type {Record<string, string>} */
const INLINE = { em: 'em', strong: 'strong', s: 's' };
const BLOCKS = new Set(['p', 'blockquote', 'ul', 'ol', 'li', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'table', 'thead', 'tbody', 'tr', 'th', 'td']);

/** A piece of Markdown that may grow. */
export class MarkdownView {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.tail = h('div.tail');
    root.append(this.tail);
    this.text = '';
    this.done = 0;
    /** @type {any} */
    this.env = {};
    /** @type {{node: Text, marker: string}|undefined} */
    this.fence = undefined;
    /** @type {Text|undefined} */
    this.plain = undefined;
    this.isFinal = false;
    this.hasDefinitions = false;
  }

  /** `isGrown`: it is known that nothing was changed but that text was added, so that need not be looked for.
   * @param {string} text @param {boolean} isFinal @param {boolean} isGrown */
  update(text, isFinal, isGrown = false) {
    const isGrowth = text.length >= this.text.length && (isGrown || text.startsWith(this.text));
    if (!isGrowth) this.#restart();
    if (isGrowth && text.length === this.text.length && isFinal === this.isFinal) return;
    const fresh = text.slice(this.text.length);
    this.text = text;
    this.isFinal = isFinal;
    if (this.fence && !this.#growFence(fresh)) return;
    if (this.plain && !isFinal && !fresh.includes('\n')) { this.plain.appendData(fresh); return; } // no block ends within a line
    this.#parse();
    if (isFinal && this.hasDefinitions) { // what was defined late counts for what stands before it too
      const { env } = this;
      this.#restart();
      this.text = text;
      this.env = { references: env.references };
      this.#parse();
    }
  }

  #restart() {
    this.root.replaceChildren(this.tail);
    this.tail.replaceChildren();
    Object.assign(this, { text: '', done: 0, env: {}, fence: undefined, plain: undefined, hasDefinitions: false });
  }

  #parse() {
    const rest = this.text.slice(this.done);
    const env = copied(this.env); // what is not whole yet defines nothing
    const blocks = split(rest, env);
    const complete = rest.split('\n').length - 1;
    let last = -1;
    for (let i = 0; i < blocks.length; i++) {
      const next = blocks[i + 1];
      if (this.isFinal || (next && next.start < complete)) last = i; else break;
    }
    if (last >= 0) this.#close(blocks.slice(0, last + 1), rest, this.isFinal ? rest.length : lineStart(rest, blocks[last + 1]?.start ?? 0));
    if (last < 0) { this.#drawTail(blocks, rest, env); return; }
    const left = this.text.slice(this.done);
    const after = copied(this.env);
    this.#drawTail(split(left, after), left, after);
  }

  /** @param {Block[]} blocks @param {string} source @param {number} length */
  #close(blocks, source, length) {
    split(source.slice(0, length), this.env);
    if (Object.keys(this.env.references ?? {}).length) this.hasDefinitions = true;
    for (const block of blocks) for (const node of nodesOf(block, source, this.env, true)) this.root.insertBefore(node, this.tail);
    this.done += length;
  }

  /** @param {Block[]} blocks @param {string} rest @param {any} env */
  #drawTail(blocks, rest, env) {
    this.fence = undefined;
    this.plain = undefined;
    if (!rest.trim()) { this.tail.replaceChildren(); return; }
    const only = blocks.length === 1 ? blocks[0] : undefined;
    if (only && only.tokens[0]?.type === 'fence' && !isClosedFence(only, rest)) {
      const block = codeBlock(only.tokens[0].info, openFenceText(only.tokens[0], rest));
      this.tail.replaceChildren(block.node);
      this.fence = { node: block.text, marker: only.tokens[0].markup };
      return;
    }
    if (rest.length > TAIL_MAX) {
      this.plain = document.createTextNode(rest);
      this.tail.replaceChildren(h('p.plain', { dir: 'auto' }, this.plain));
      return;
    }
    const nodes = blocks.flatMap((block) => nodesOf(block, rest, env, false));
    this.tail.replaceChildren(...nodes);
  }

  /** Code that is being written grows by what is new. Gives whether it has to be parsed again. @param {string} fresh */
  #growFence(fresh) {
    const { node, marker } = /** @type {{node: Text, marker: string}} */ (this.fence);
    const from = this.text.lastIndexOf('\n', Math.max(0, this.text.length - fresh.length - 1)) + 1;
    const mayEnd = this.text.slice(from).split('\n').some((line) => line.trimStart().startsWith(marker[0] ?? '`'));
    if (mayEnd || this.isFinal) return true;
    node.appendData(fresh);
    return false;
  }
}

/** @typedef {{tokens: any[], start: number, end: number}} Block */

/** The blocks of a text, by lines, without looking at what is in them. @param {string} source @param {any} env @returns {Block[]} */
function split(source, env) {
  /** @type {any[]} */
  const tokens = [];
  const clean = source.includes('\r') || source.includes('\0') ? source.replace(/\r\n?/g, '\n').replace(/\0/g, '\uFFFD') : source;
  md.block.parse(clean, md, env, tokens);
  /** @type {Block[]} */
  const blocks = [];
  let depth = 0;
  for (const token of tokens) {
    if (depth === 0 && token.nesting >= 0) blocks.push({ tokens: [], start: token.map?.[0] ?? 0, end: token.map?.[1] ?? 0 });
    blocks.at(-1)?.tokens.push(token);
    depth += token.nesting;
  }
  return blocks;
}

/** @param {any} env */
const copied = (env) => ({ references: { ...env.references } });

/** @param {string} text @param {number} line */
function lineStart(text, line) {
  let at = 0;
  for (; line > 0; line--) at = text.indexOf('\n', at) + 1;
  return at;
}

/** @param {Block} block @param {string} source */
function isClosedFence(block, source) {
  const last = source.split('\n').slice(block.start, block.end).at(-1) ?? '';
  const found = FENCE_END.exec(last);
  return block.end - block.start > 1 && Boolean(found?.[1]?.startsWith(block.tokens[0].markup));
}

/** All that follows the first line, with what has no newline yet. @param {any} token @param {string} source */
function openFenceText(token, source) {
  const start = lineStart(source, token.map[0] + 1);
  return start === 0 ? '' : source.slice(start);
}

/** @param {Block} block @param {string} source @param {any} env @param {boolean} isClosed @returns {Node[]} */
function nodesOf(block, source, env, isClosed) {
  const first = block.tokens[0];
  if (first.type === 'reference_definition') return []; // it is seen where it is used
  if (first.type === 'fence' || first.type === 'code_block') {
    const made = codeBlock(first.info ?? '', first.content);
    if (isClosed) highlightLater(made.text, first.info ?? '');
    return [made.node];
  }
  const length = block.tokens.reduce((sum, token) => sum + (token.content?.length ?? 0), 0);
  const nodes = length > BLOCK_MAX ? [] : build(block.tokens, env);
  if (!nodes.some((node) => node.textContent || node.nodeName === 'HR')) { // too long, or nested too deeply
    const from = lineStart(source, block.start);
    const to = block.end >= source.split('\n').length ? source.length : lineStart(source, block.end);
    return [h('p.plain', { dir: 'auto' }, source.slice(from, to))];
  }
  return nodes;
}

/** @param {any[]} tokens @param {any} env @returns {Node[]} */
function build(tokens, env) {
  const root = document.createDocumentFragment();
  /** @type {Node[]} */
  const stack = [root];
  const top = () => /** @type {Node} */ (stack[stack.length - 1]);
  for (const token of tokens) {
    if (token.type === 'inline') {
      /** @type {any[]} */
      const children = [];
      md.inline.parse(token.content, md, env, children);
      inline(children, top());
    } else if (token.type === 'fence' || token.type === 'code_block') {
      const made = codeBlock(token.info ?? '', token.content);
      highlightLater(made.text, token.info ?? '');
      top().appendChild(made.node);
    } else if (token.type === 'hr') top().appendChild(h('hr'));
    else if (token.nesting === 1 && BLOCKS.has(token.tag)) stack.push(top().appendChild(openBlock(token)));
    else if (token.nesting === -1 && BLOCKS.has(token.tag)) stack.pop();
  }
  return [...root.childNodes];
}

/** @param {any} token */
function openBlock(token) {
  if (token.hidden) return h('span'); // a tight list has no paragraphs
  const node = h(token.tag, ['p', 'li', 'blockquote', 'td', 'th'].includes(token.tag) || token.tag[0] === 'h' ? { dir: 'auto' } : null);
  if (token.tag === 'ol') { const start = Number(token.attrGet('start')); if (start > 1) node.start = start; }
  const align = /text-align:(left|right|center)/.exec(token.attrGet('style') ?? '');
  if (align) node.classList.add(`align-${align[1]}`);
  return node;
}

/** @param {any[]} tokens @param {Node} into */
function inline(tokens, into) {
  /** @type {Node[]} */
  const stack = [into];
  let inLink = 0;
  const top = () => /** @type {Node} */ (stack[stack.length - 1]);
  for (const token of tokens) {
    const tag = INLINE[token.tag];
    if (token.type === 'text' || token.type === 'html_inline' || token.type === 'text_special') text(token.content, top(), inLink > 0);
    else if (token.type === 'code_inline') top().appendChild(h('code', null, token.content));
    else if (token.type === 'softbreak') top().appendChild(document.createTextNode('\n'));
    else if (token.type === 'hardbreak') top().appendChild(h('br'));
    else if (token.type === 'image') top().appendChild(chip(token.content || 'image', String(token.attrGet('src') ?? '')));
    else if (token.type === 'link_open') { stack.push(top().appendChild(linkTo(String(token.attrGet('href') ?? '')))); inLink++; }
    else if (token.type === 'link_close') { stack.pop(); inLink--; }
    else if (tag && token.nesting === 1) stack.push(top().appendChild(h(tag)));
    else if (tag && token.nesting === -1) stack.pop();
    else if (token.content) text(token.content, top(), true);
  }
}

/** Text, in which addresses are links. @param {string} content @param {Node} into @param {boolean} isPlain */
function text(content, into, isPlain) {
  if (isPlain || !content.includes('://')) { into.appendChild(document.createTextNode(content)); return; }
  let at = 0;
  for (const found of content.matchAll(BARE)) {
    into.appendChild(document.createTextNode(content.slice(at, found.index)));
    const link = linkTo(found[0]);
    link.append(found[0]);
    into.appendChild(link);
    at = found.index + found[0].length;
  }
  into.appendChild(document.createTextNode(content.slice(at)));
}

/** @param {string} info @param {string} content */
function codeBlock(info, content) {
  const node = document.createTextNode(content);
  const language = /^[\w+#.-]{1,30}/.exec(info)?.[0] ?? '';
  const copy = h('button.copy', { data: { copy: '' } }, 'Copy');
  const block = h('div.code', null, h('div.code-head', null, h('span', null, language || 'text'), copy), h('pre', { tabIndex: 0 }, h('code', null, node)));
  return { node: block, text: node };
}
