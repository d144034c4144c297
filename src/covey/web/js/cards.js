// Parts of a message as nodes: text, reasoning, tool calls, attachments, and how it ended.

import { parametersOf } from './arguments.js';
import { headline, standing, summary } from './calls.js';
import { diffRows, unifiedDiff } from './diff.js';
import { fill, glyph, h, marked } from './dom.js';
import { outputText } from './fold.js';
import { MarkdownView } from './markdown.js';
import { baseName, counted, decoded, lasted, oneLine, size, terminalPieces, visible } from './text.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./types.js').Part} Part */

const ICONS = { writing: 'busy', running: 'busy', asking: 'ask', done: 'check', failed: 'close', denied: 'close', stopped: 'stop' };
const SAYS = { writing: 'being written', running: 'running', asking: 'waits for your answer', done: 'done', failed: 'failed', denied: 'denied', stopped: 'stopped' };
const LINES_SHOWN = 200;
const LIVE_LINES = 8;
const SMALL_DIFF = 24;
const RASTER = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp']);

/** @param {App} app @param {Part} part @param {string} key */
export function partView(app, part, key) {
  switch (part.type) {
    case 'text': return new TextPart();
    case 'reasoning': return new ReasoningPart(app, key);
    case 'tool_call': return new ToolCard(app, part.data.id);
    case 'binary': return new BinaryPart();
    case 'shell_command': return new ShellPart(app, key);
    case 'finish': return new FinishPart();
    default: return new NoPart();
  }
}

class NoPart {
  constructor() { this.node = h('span', { hidden: true }); }
  update() {}
}

class TextPart {
  constructor() {
    this.node = h('div.prose');
    this.view = new MarkdownView(this.node);
    /** @type {Part|undefined} */
    this.part = undefined;
  }

  /** A part that only grew is the same object (`growth.js`). @param {Part} part @param {boolean} isFinal */
  update(part, isFinal) {
    this.view.update(part.data.text, isFinal, part === this.part);
    this.part = part;
  }
}

class ReasoningPart {
  /** @param {App} app @param {string} key */
  constructor(app, key) {
    this.label = h('span');
    this.body = h('div.prose.thinking');
    this.node = h('details.reasoning', null, h('summary', null, glyph('thought'), this.label), this.body);
    this.view = new MarkdownView(this.body);
    app.keepOpen(this.node, key, () => this.#draw());
    this.part = null;
    this.isFinal = false;
  }

  /** @param {any} part @param {boolean} isFinal */
  update(part, isFinal) {
    this.part = part;
    this.isFinal = isFinal;
    const { started_at: from, finished_at: to } = part.data;
    this.label.textContent = to && to > from ? `Thought for ${lasted(to - from)}` : isFinal ? 'Thoughts' : 'Thinking…';
    this.#draw();
  }

  #draw() {
    const part = /** @type {any} */ (this.part);
    if (part && this.node.open) this.view.update(part.data.thinking, this.isFinal);
  }
}

/** One tool call, with its output while it runs, and its result. */
export class ToolCard {
  /** @param {App} app @param {string} id */
  constructor(app, id) {
    this.app = app;
    this.id = id;
    this.sign = glyph('');
    this.verb = h('b');
    this.what = h('span.what');
    this.side = h('span.side');
    this.state = h('span.visually-hidden');
    this.body = h('div.card-body');
    this.live = h('pre.live', { hidden: true });
    this.details = h('details.card', null, h('summary', null, this.sign, this.verb, this.what, this.side, this.state), this.body);
    this.node = h('div.tool', { data: { call: id } }, this.details, this.live);
    app.keepOpen(this.details, id, () => this.#drawBody());
    this.call = { id, name: '', input: '', finished: false };
    this.drawn = '';
    this.named = '';
  }

  /** @param {Part} part */
  update(part) {
    this.call = part.data;
    this.refresh();
  }

  refresh() {
    const { app, call } = this;
    const result = app.results.get(this.id);
    const isAsking = [...app.view.asks.open.values()].some((ask) => ask.request.tool_call_id === this.id);
    const state = isAsking ? 'asking' : standing(call, result);
    if (this.node.dataset.state !== state) {
      this.node.dataset.state = state;
      this.sign.dataset.icon = ICONS[state];
      this.state.textContent = SAYS[state];
    }
    this.#name(state, result);
    this.#drawLive(state);
    if (this.details.open) this.#drawBody();
  }

  /** The JSON of an input is read once, when it is whole. @param {string} state @param {any} result */
  #name(state, result) {
    if (state === 'writing') {
      this.verb.textContent = oneLine(this.call.name);
      this.what.textContent = this.call.input ? `writing ${size(this.call.input.length)}…` : '';
      return;
    }
    const key = `${this.call.input.length} ${state}`;
    if (this.named === key) return;
    this.named = key;
    const { verb, what, note } = headline(this.call, this.app.root);
    this.verb.textContent = verb;
    fill(this.what, what, note && h('small', null, ` ${note}`));
    this.what.classList.toggle('mono', this.call.name === 'bash');
    if (!result) { fill(this.side); return; }
    const facts = decoded(result.metadata);
    const hasCounts = typeof facts.additions === 'number';
    fill(this.side, hasCounts && [h('span.plus', null, `+${facts.additions}`), ' ', h('span.minus', null, `−${facts.removals ?? 0}`)],
      !hasCounts && (state === 'done' || state === 'failed') ? summary(facts) || (result.is_error ? 'failed' : '') : '', state === 'denied' && 'denied', state === 'stopped' && 'stopped');
    const isSmall = facts.diff && diffRows(facts.diff).length <= SMALL_DIFF;
    if (isSmall && !this.app.wasToggled(this.id)) { this.details.open = true; this.#drawBody(); }
  }

  /** @param {string} state */
  #drawLive(state) {
    const output = this.app.view.outputs.get(this.id);
    const isShown = Boolean(output && (state === 'running' || state === 'done'));
    this.live.hidden = !isShown;
    if (!output || !isShown) return;
    const text = outputText(output);
    const lines = text.replace(/\n$/, '').split('\n');
    fill(this.live, ...terminalNodes(lines.slice(this.details.open ? -LINES_SHOWN : -LIVE_LINES).join('\n')));
  }

  #drawBody() {
    const result = this.app.results.get(this.id);
    const key = result ? 'result' : this.call.finished ? 'call' : `input ${this.call.input.length}`;
    if (this.drawn === key) return;
    this.drawn = key;
    if (!this.call.finished && !result) { fill(this.body, h('pre', null, visible(this.call.input))); return; }
    const params = parametersOf(this.call);
    const facts = result ? decoded(result.metadata) : {};
    const children = [];
    if (this.call.name === 'bash') children.push(h('pre.command', { tabIndex: 0 }, visible(String(params.command ?? ''))));
    else if (!facts.diff && !['view', 'todos', 'question'].includes(this.call.name)) children.push(parameters(params));
    if (this.call.name === 'todos' && Array.isArray(params.todos)) children.push(todoList(params.todos));
    if (facts.diff) children.push(unifiedDiff(String(facts.diff), { label: `Changes of ${oneLine(String(facts.file_path ?? 'files'))}` }));
    else if (result && this.call.name !== 'todos') children.push(longText(result.content));
    if (result?.data && RASTER.has(result.mime_type ?? '')) children.push(picture(result.data, result.mime_type, 'what the tool saw'));
    fill(this.body, children);
  }
}

/** @param {Record<string, any>} params */
function parameters(params) {
  const rows = Object.entries(params).map(([name, value]) => h('div.param', null, h('small', null, oneLine(name)),
    h('pre', { tabIndex: 0 }, visible(typeof value === 'string' ? value : JSON.stringify(value, null, 2)))));
  return h('div.params', null, rows);
}

/** @param {any[]} todos */
export function todoList(todos) {
  /** @type {Record<string, string>} */
  const sign = { completed: 'check', in_progress: 'dot', pending: 'circle' };
  /** @type {Record<string, string>} */
  const says = { completed: 'done', in_progress: 'under way', pending: 'to do' };
  return h('ul.todos', null, todos.map((todo) => {
    const status = String(Object.hasOwn(sign, todo?.status) ? todo.status : 'pending');
    return h(`li.${status}`, null, glyph(sign[status] ?? ''), h('span.visually-hidden', null, `${says[status]}: `), oneLine(String(todo?.content ?? '')));
  }));
}

/** Text of a terminal. @param {string} text */
export const terminalNodes = (text) => terminalPieces(text).map((piece) => (piece.classes ? h('span', { className: piece.classes }, piece.text) : document.createTextNode(piece.text)));

/** Long output: its head and its tail, what was left out, and the rest in pieces. @param {string} text */
export function longText(text) {
  const lines = text.replace(/\n$/, '').split('\n');
  if (lines.length <= 2 * LINES_SHOWN + 50) return h('pre.output', { tabIndex: 0 }, terminalNodes(lines.join('\n')));
  let from = LINES_SHOWN;
  const to = lines.length - LINES_SHOWN;
  const head = h('pre.output', { tabIndex: 0 }, terminalNodes(lines.slice(0, from).join('\n')));
  const more = h('button.more');
  const say = () => { more.textContent = `${counted(to - from, 'line')} left out. Show ${Math.min(1000, to - from)} more`; };
  more.addEventListener('click', () => {
    head.append('\n', ...terminalNodes(lines.slice(from, Math.min(to, from + 1000)).join('\n')));
    from = Math.min(to, from + 1000);
    if (from === to) more.remove(); else say();
  });
  say();
  return h('div', null, head, more, h('pre.output', { tabIndex: 0 }, terminalNodes(lines.slice(to).join('\n'))));
}

/** Bytes of a part, which never come from elsewhere. @param {string} base64 @param {string} type @param {string} name */
export function picture(base64, type, name) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type }));
  return h('img.picture', { src: url, alt: oneLine(name), onload: () => URL.revokeObjectURL(url) });
}

class BinaryPart {
  constructor() {
    this.node = h('div.attachment');
    this.isDrawn = false;
  }

  /** @param {Part} part */
  update(part) {
    if (this.isDrawn) return;
    this.isDrawn = true;
    const { Path: path, MIMEType: type, Data: data } = part.data;
    const name = baseName(String(path));
    if (RASTER.has(type)) fill(this.node, picture(data, type, name), h('small', null, name));
    else fill(this.node, h('span.chip', null, '📎 ', name, h('small', null, ` ${oneLine(type)}, ${size(Math.floor(data.length * 0.75))}`)));
  }
}

class ShellPart {
  /** @param {App} app @param {string} key */
  constructor(app, key) {
    this.node = h('div.tool');
    this.app = app;
    this.key = key;
  }

  /** @param {Part} part */
  update(part) {
    const { command, output, exit_code: code } = part.data;
    const details = h('details.card', null,
      h('summary', null, glyph(code ? 'close' : 'check'), h('b', null, '$'), h('span.what.mono', null, oneLine(command)), h('span.side', null, code ? `exit code ${code}` : 'your command')),
      h('div.card-body', null, longText(output)));
    this.node.dataset.state = code ? 'failed' : 'done';
    this.app.keepOpen(details, this.key, () => {});
    fill(this.node, details);
  }
}

/** @type {Record<string, string>} */
const ENDS = {
  canceled: 'Stopped', error: 'Failed', max_tokens: 'The answer was cut off: the model may not say more at once',
  content_filter: 'The provider withheld the answer', unknown: 'The answer ended for an unknown reason',
};

class FinishPart {
  constructor() { this.node = h('div.finish', { hidden: true }); }

  /** @param {Part} part */
  update(part) {
    const { reason, message, details } = part.data;
    const words = ENDS[reason];
    this.node.hidden = !words;
    if (!words) return;
    this.node.dataset.reason = reason;
    fill(this.node, h('b', null, oneLine(message || words)), details && h('p', null, marked(visible(details))));
  }
}
