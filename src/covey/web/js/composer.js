// Where prompts are written: drafts that survive, attachments, @files, commands, and how a prompt is sent.

import { randomId } from './api.js';
import { fill, glyph, h, later } from './dom.js';
import { keep, keepFiles, kept, keptFiles, keptJson } from './store.js';
import { oneLine, size } from './text.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {{file_path: string, file_name: string, mime_type: string, content: string, bytes: number}} Attached */

const ATTACHED_MAX = 20 * 1024 * 1024;
/** A body may have 32 MiB, and base64 takes a third more. */
const DRAFT_MS = 300;
const GROWS = CSS.supports('field-sizing', 'content');
/** @type {Record<string, string>} */
const MODES = { fold: 'Steer', own_turn: 'Queue', interrupt: 'Interrupt' };
/** @type {Record<string, string>} */
const SAYS = {
  fold: 'joins what is being done, at its next step', own_turn: 'waits for its own turn', interrupt: 'stops what is being done, and is next',
};

/** What Alt Enter does instead. @param {string} mode */
const other = (mode) => (mode === 'fold' ? 'own_turn' : 'fold');

export class Composer {
  /** @param {App} app @param {{form: any, field: any, send: any, stop: any, attach: any, file: any, mode: any, chips: any, hint: any, options: any}} parts */
  constructor(app, parts) {
    this.app = app;
    this.parts = parts;
    /** @type {Attached[]} */
    this.files = [];
    this.draftKey = '';
    /** @type {any} */
    this.timer = undefined;
    /** @type {{kind: string, start: number, items: any[], at: number}|null} */
    this.completing = null;
    this.turn = 0;
    /** @type {Attached[]} */
    this.savedFiles = this.files;
    this.unread = 0;
    /** Files of this draft that are not loaded yet. */
    this.fitted = '';
    this.#listen();
  }

  focus() { this.parts.field.focus({ preventScroll: true }); }

  #listen() {
    const { form, field, attach, file, stop, mode } = this.parts;
    form.addEventListener('submit', (/** @type {Event} */ event) => { event.preventDefault(); this.send(); });
    field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => this.#key(event));
    field.addEventListener('input', () => { this.#changed(); void this.#complete(); });
    field.addEventListener('blur', () => setTimeout(() => this.#close(), 150));
    field.addEventListener('paste', (/** @type {ClipboardEvent} */ event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length) { event.preventDefault(); void this.attach(files); }
    });
    attach.addEventListener('click', () => file.click());
    file.addEventListener('change', () => { void this.attach([...file.files]); file.value = ''; });
    stop.addEventListener('click', () => this.app.stop());
    mode.addEventListener('change', () => { keep('mode', mode.value); this.drawState(); });
    mode.value = kept('mode');
    mode.value ||= 'fold';
    document.addEventListener('dragover', (event) => { if (event.dataTransfer?.types.includes('Files')) { event.preventDefault(); form.classList.add('dropping'); } });
    document.addEventListener('dragleave', (event) => { if (!event.relatedTarget) form.classList.remove('dropping'); });
    document.addEventListener('drop', (event) => {
      form.classList.remove('dropping');
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      void this.attach([...event.dataTransfer.files]);
    });
    globalThis.addEventListener('pagehide', () => this.#save());
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing || event.keyCode === 229) return; // it ends a word of an input method
    if (this.completing && this.#completionKey(event)) return;
    if (event.key !== 'Enter' || event.shiftKey) return;
    const sends = event.altKey || event.ctrlKey || event.metaKey || !this.app.isTouch;
    if (!sends) return;
    event.preventDefault();
    this.send(event.altKey);
  }

  // ── sending ──

  /** @param {boolean} isOther  the other way than usual: queue instead of steer, and back */
  send(isOther = false) {
    const { field, mode } = this.parts;
    const prompt = field.value.trim();
    if (!prompt && !this.files.length && !this.app.review.comments.length) return;
    const comments = this.app.review.takeComments();
    const how = isOther ? other(mode.value) : mode.value;
    const attachments = this.files.map(({ bytes, ...file }) => file);
    field.value = '';
    this.files = [];
    this.unread = 0;
    this.#drawChips();
    this.#save();
    void this.app.prompt({ run_id: randomId(), prompt: [prompt, comments].filter(Boolean).join('\n\n'), mode: how, ...(attachments.length ? { attachments } : {}) });
  }

  /** A run is under way, or not: what the buttons say. */
  drawState() {
    const { send, stop, mode, hint } = this.parts;
    const isBusy = this.app.isBusy;
    const hasText = Boolean(this.parts.field.value.trim() || this.files.length || this.app.review.comments.length);
    stop.hidden = !isBusy;
    mode.hidden = !isBusy;
    send.disabled = !hasText;
    const how = mode.value === 'fold' && this.app.record?.keepsOthersOut ? 'own_turn' : mode.value;
    const word = isBusy ? MODES[how] : 'Send';
    if (send.getAttribute('aria-label') !== word) { send.setAttribute('aria-label', word); send.title = word; }
    const says = isBusy && hasText ? `${word}: ${SAYS[how]}${this.app.isTouch ? '' : ` · Alt Enter: ${MODES[other(mode.value)]}`}` : '';
    if (hint.textContent !== says) hint.textContent = says;
    this.#fit();
  }

  /** Where no field grows by itself (Safari), this one is made as high as its text. */
  #fit() {
    const { field } = this.parts;
    if (GROWS || this.fitted === field.value) return;
    this.fitted = field.value;
    field.style.height = 'auto';
    field.style.height = `${field.scrollHeight}px`;
  }

  // ── drafts ──

  /** Another session: its draft. @param {string} key */
  async show(key) {
    if (key === this.draftKey) return;
    this.#save();
    this.draftKey = key;
    const draft = keptJson(`draft ${key}`);
    this.parts.field.value = draft?.text ?? '';
    this.files = this.savedFiles = [];
    this.unread = draft?.files ?? 0;
    this.#drawChips();
    this.drawState();
    if (!this.unread) return; // files that a lost delete left behind were sent
    const files = await keptFiles(`draft ${key}`);
    if (key !== this.draftKey || !this.unread) return;
    this.unread = 0;
    this.files = this.savedFiles = [...files, ...this.files];
    this.#drawChips();
    this.drawState();
  }

  /** A draft for a new session goes with it. @param {string} key */
  moveTo(key) { this.draftKey = key; }

  #changed() {
    later('composer', () => this.drawState());
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#save(), DRAFT_MS);
  }

  #save() {
    clearTimeout(this.timer);
    if (!this.draftKey) return;
    const text = this.parts.field.value;
    const files = this.files.length + this.unread;
    keep(`draft ${this.draftKey}`, text || files ? JSON.stringify({ text, files }) : '');
    if (this.savedFiles !== this.files) { this.savedFiles = this.files; void keepFiles(`draft ${this.draftKey}`, this.files); }
  }

  /** Put something into the prompt. @param {string} text */
  insert(text) {
    const { field } = this.parts;
    field.setRangeText(text, field.selectionStart, field.selectionEnd, 'end');
    this.#changed();
  }

  /** Before all that is written. @param {string} text */
  begin(text) {
    const { field } = this.parts;
    field.setSelectionRange(0, 0);
    this.insert(text);
    this.focus();
  }

  // ── attachments ──

  /** @param {File[]} files */
  async attach(files) {
    for (const file of files) {
      const used = this.files.reduce((sum, each) => sum + each.bytes, 0);
      const name = oneLine(file.name || 'pasted');
      if (!file.size) { this.app.toast(`${name} is empty, so it was not attached.`); continue; }
      if (used + file.size > ATTACHED_MAX) { this.app.toast(`${name} was not attached: with it there would be more than ${size(ATTACHED_MAX)}.`); continue; }
      const type = file.type || typeOf(name);
      if (!type.startsWith('image/') && !isText(type)) { this.app.toast(`${name} was not attached: only text and pictures can be (it is ${type || 'of an unknown kind'}).`); continue; }
      try {
        this.files = [...this.files, { file_path: file.name || name, file_name: file.name || name, mime_type: type.startsWith('image/') || type.startsWith('text/') ? type : 'text/plain', content: await base64(file), bytes: file.size }];
      } catch { this.app.toast(`${name} could not be read, so it was not attached.`); }
    }
    this.#drawChips();
    this.drawState();
    this.#save();
  }

  #drawChips() {
    fill(this.parts.chips, this.files.map((file) => h('span.chip', null, oneLine(file.file_name), h('small', null, ` ${size(file.bytes)}`),
      h('button', { aria: { label: `Remove ${oneLine(file.file_name)}` }, onclick: () => { this.files = this.files.filter((each) => each !== file); this.#drawChips(); this.drawState(); this.#save(); } }, glyph('close')))));
  }

  // ── completion: @files and /commands ──

  async #complete() {
    const { field } = this.parts;
    const before = field.value.slice(0, field.selectionStart);
    const mention = /(?:^|\s)@([^\s@]{0,100})$/.exec(before);
    const command = /^\/([\w:-]{0,80})$/.exec(before);
    const mine = ++this.turn;
    if (!mention && !command) { this.#close(); return; }
    const typed = (mention ?? command)?.[1] ?? '';
    const items = mention ? await this.#files(typed) : await this.app.slashCommands(typed);
    if (mine !== this.turn || document.activeElement !== field) return;
    this.completing = { kind: mention ? 'file' : 'command', start: before.length - typed.length - 1, items, at: 0 };
    this.#drawOptions();
  }

  /** @param {string} typed */
  async #files(typed) {
    try { return (await this.app.api.files(typed)).files.slice(0, 12); } catch { return []; }
  }

  #drawOptions() {
    const { options, field } = this.parts;
    const { items, at, kind } = /** @type {any} */ (this.completing);
    options.hidden = !items.length;
    field.setAttribute('aria-expanded', String(items.length > 0));
    fill(options, items.map((/** @type {any} */ item, /** @type {number} */ index) => h('li', {
      role: 'option', id: `option-${index}`, aria: { selected: index === at }, onpointerdown: (/** @type {Event} */ event) => { event.preventDefault(); this.#choose(index); },
    }, kind === 'file' ? oneLine(item.path) : [h('b', null, `/${oneLine(item.name)}`), h('small', null, ` ${oneLine(item.about ?? '')}`)])));
    if (items.length) field.setAttribute('aria-activedescendant', `option-${at}`);
  }

  /** @param {KeyboardEvent} event */
  #completionKey(event) {
    const completing = /** @type {any} */ (this.completing);
    if (!completing.items.length) return false;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      completing.at = (completing.at + (event.key === 'ArrowDown' ? 1 : completing.items.length - 1)) % completing.items.length;
      this.#drawOptions();
    } else if (event.key === 'Enter' || event.key === 'Tab') this.#choose(completing.at);
    else if (event.key === 'Escape') this.#close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  /** @param {number} index */
  #choose(index) {
    const { kind, start, items } = /** @type {any} */ (this.completing);
    const { field } = this.parts;
    const item = items[index];
    this.#close();
    if (kind === 'file') {
      const path = /\s/.test(item.path) ? `"${item.path}"` : item.path;
      field.setRangeText(`@${path} `, start, field.selectionStart, 'end');
    } else if (item.run) { field.setRangeText('', start, field.selectionStart, 'end'); item.run(); }
    else field.setRangeText(`/${item.name} `, start, field.selectionStart, 'end');
    this.#changed();
  }

  #close() {
    this.completing = null;
    this.parts.options.hidden = true;
    this.parts.field.setAttribute('aria-expanded', 'false');
    this.parts.field.removeAttribute('aria-activedescendant');
  }
}

/** @param {string} type */
const isText = (type) => type.startsWith('text/') || ['application/json', 'application/toml', 'application/xml', 'application/javascript', 'application/x-sh', 'application/yaml'].includes(type);

/** A browser knows few kinds of files by their names. @param {string} name */
function typeOf(name) {
  const end = name.split('.').at(-1)?.toLowerCase() ?? '';
  const isKnown = 'c cc cfg conf cpp cs css diff go h hpp ini java js json jsx kt lock log lua md mk patch php pl py rb rs scss sh sql swift toml ts tsx txt vue xml yaml yml zig'.split(' ').includes(end);
  return isKnown || !name.includes('.') ? 'text/plain' : '';
}

/** @param {File} file @returns {Promise<string>} */
async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = '';
  for (let at = 0; at < bytes.length; at += 32768) binary += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(binary);
}
