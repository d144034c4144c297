// The panel beside a session: all its changes as a review, files of the workspace, jobs.

import { splitDiff, unifiedDiff } from './diff.js';
import { byId, fill, glyph, h, later } from './dom.js';
import { FilesTab } from './files.js';
import { JobsTab } from './jobs.js';
import { keep, kept, keptJson } from './store.js';
import { counted, oneLine, shortPath, since, visible } from './text.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {{path: string, line: number, side: string, quote: string}} Place */
/** @typedef {Place & {text: string}} Comment */

const STATUS = /** @type {Record<string, [string, string]>} */ ({ added: ['A', 'added'], modified: ['M', 'modified'], deleted: ['D', 'deleted'], renamed: ['R', 'renamed'] });
const PAGE = 500;

export class Review {
  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.app = app;
    this.root = root;
    this.session = '';
    /** @type {any[]} */
    this.files = [];
    /** @type {any[]} */
    this.missed = [];
    /** @type {Comment[]} */
    this.comments = [];
    /** What is being written, by the place of its line, or by the comment that is edited: the diff is drawn anew whenever a turn changes a file. @type {Map<string|Comment, string>} */
    this.drafts = new Map();
    /** What is drawn of files stays until there is something else to show, so that nothing jumps. @type {Map<string, HTMLElement>} */
    this.bodies = new Map();
    this.isSplit = kept('diff') === 'split';
    this.isStale = true;
    /** Files that somebody opened or closed; one alone is open at first, and so is what was commented on. @type {Map<string, boolean>} */
    this.open = new Map();
    this.tab = 'changes';
    this.explorer = new FilesTab(app, this);
    this.jobs = new JobsTab(app);
    this.body = h('div.panel-body', { id: 'panel-body', role: 'tabpanel', tabIndex: -1 });
    this.tabs = h('div.tabs', { role: 'tablist', aria: { label: 'Beside the session' } });
    root.append(h('header', null, this.tabs, h('button.icon-button', { aria: { label: 'Close the panel' }, onclick: () => this.toggle(false) }, glyph('close'))), this.body);
  }

  get isShown() { return document.body.classList.contains('panel-open'); }

  /** @param {boolean} [isShown] @param {string} [tab] */
  toggle(isShown = !this.isShown, tab = this.tab) {
    this.tab = tab;
    document.body.classList.toggle('panel-open', isShown);
    byId('panel-button').setAttribute('aria-pressed', String(isShown));
    keep('panel', isShown && !this.app.isTouch ? 'yes' : '');
    if (isShown) this.refresh();
  }

  /** Another session. @param {string} id */
  show(id) {
    if (id === this.session) return;
    this.session = id;
    this.comments = keptJson(`comments ${id}`) ?? [];
    this.drafts.clear();
    this.files = [];
    this.open.clear();
    this.bodies.clear();
    this.isStale = true;
    if (this.isShown) this.refresh();
    this.#drawCount();
    this.#commentsChanged();
  }

  /** A turn has changed a file: what is shown is looked at again, once for many of them. @param {any} file */
  changed(file) {
    if (file.session_id !== this.session && !this.app.isInShown(file.session_id)) return;
    this.isStale = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { if (this.isShown && this.tab === 'changes') void this.#load(); else void this.#load(true); }, 250);
  }

  /** What happened meanwhile was perhaps not told. */
  connected() {
    this.isStale = true;
    if (this.isShown) this.refresh();
  }

  refresh() {
    this.#drawTabs();
    this.jobs.stop();
    if (!this.app.api.workspaceId) return; // not connected yet
    if (this.tab === 'files') { fill(this.body, this.explorer.node); void this.explorer.show(); }
    else if (this.tab === 'jobs') { fill(this.body, this.jobs.node); void this.jobs.show(); }
    else if (this.isStale) void this.#load();
    else this.#draw();
  }

  #drawTabs() {
    const names = { changes: 'Changes', files: 'Files', jobs: 'Jobs' };
    fill(this.tabs, Object.entries(names).map(([tab, name]) => h('button', {
      role: 'tab', aria: { selected: tab === this.tab, controls: 'panel-body' }, onclick: () => { this.tab = tab; this.refresh(); },
    }, name, tab === 'changes' && this.files.length ? h('small', null, ` ${this.files.length}`) : null)));
  }

  /** @param {boolean} isOnlyCounted */
  async #load(isOnlyCounted = false) {
    const id = this.session;
    if (!id) { this.files = []; if (!isOnlyCounted) this.#draw(); return; }
    const found = await this.app.trying('The changes could not be loaded', async () => {
      /** @type {any[]} */
      const files = [];
      let page = await this.app.api.changes(id, { diffs: 0, limit: PAGE });
      const missed = page.missed ?? [];
      for (;;) {
        files.push(...page.files);
        if (!page.next || files.length >= 10_000) return { files, missed };
        page = await this.app.api.changes(id, { diffs: 0, limit: PAGE, after: page.next });
      }
    });
    if (!found || id !== this.session) return;
    this.files = found.files;
    this.missed = found.missed;
    this.isStale = isOnlyCounted && this.isShown;
    this.#drawCount();
    if (this.isShown && this.tab === 'changes') { this.#drawTabs(); this.#draw(); }
  }

  #drawCount() {
    const count = this.files.length;
    const button = byId('panel-button');
    fill(button, 'Changes', count ? h('small', null, ` ${count}`) : null);
  }

  #draw() {
    if (this.tab !== 'changes') return;
    if (!this.files.length) {
      fill(this.body, h('div.nothing', null, h('b', null, 'No changes yet'), h('p', null, this.session ? 'What this session changes in files appears here, to be read and commented on.' : 'Open a session to see what it has changed.')), this.#missed());
      return;
    }
    const added = this.files.reduce((sum, file) => sum + (file.change.additions ?? 0), 0);
    const removed = this.files.reduce((sum, file) => sum + (file.change.deletions ?? 0), 0);
    const view = h('button.pill', { aria: { pressed: this.isSplit }, onclick: () => { this.isSplit = !this.isSplit; keep('diff', this.isSplit ? 'split' : ''); this.#draw(); } }, this.isSplit ? 'One column' : 'Two columns');
    const active = document.activeElement;
    fill(this.body, h('div.review-head', null, h('span', null, counted(this.files.length, 'file'), ' ', h('span.plus', null, `+${added}`), ' ', h('span.minus', null, `−${removed}`)), view),
      this.#commentBox(), this.#tree(), this.#missed());
    if (active instanceof HTMLElement && active !== document.activeElement) active.focus({ preventScroll: true });
  }

  #missed() {
    return this.missed.length ? h('details.missed', null, h('summary', null, `${counted(this.missed.length, 'command')} may have changed more`),
      h('ul', null, this.missed.map((each) => h('li', null, h('code', null, oneLine(each.label)), ` ${oneLine(each.reason)}`)))) : null;
  }

  // ── the tree ──

  /** Files by directory; a diff is fetched and drawn when it is opened. */
  #tree() {
    /** @type {Map<string, any[]>} */
    const folders = new Map();
    for (const file of this.files) {
      const path = shortPath(file.path, this.app.root);
      const at = path.lastIndexOf('/');
      const folder = at < 0 ? '' : path.slice(0, at);
      if (!folders.has(folder)) folders.set(folder, []);
      folders.get(folder)?.push({ ...file, name: path.slice(at + 1), shown: path });
    }
    return h('div.tree', null, [...folders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([folder, files]) => h('div.folder', null,
      folder && h('p.folder-name', null, `${folder}/`), files.slice(0, 300).map((file) => this.#file(file)), files.length > 300 && h('p.hint', null, `and ${files.length - 300} more`))));
  }

  /** @param {any} file */
  #file(file) {
    const { change } = file;
    const [letter, says] = STATUS[change.status] ?? ['?', ''];
    const body = this.bodies.get(file.shown) ?? h('div.file-body');
    this.bodies.set(file.shown, body);
    const counts = change.additions === null || change.additions === undefined ? null : [h('span.plus', null, `+${change.additions}`), ' ', h('span.minus', null, `−${change.deletions}`)];
    const count = this.comments.filter((each) => each.path === file.shown).length;
    const details = h('details.file', { data: { path: file.shown } }, h('summary', null, h(`span.status.${change.status}`, { title: says, aria: { label: says } }, letter),
      h('span.file-name', null, file.name), change.old_path && h('small', null, ` was ${shortPath(change.old_path, this.app.root)}`), count ? h('small.has-comments', null, ` ${counted(count, 'comment')}`) : null, h('span.side', null, counts)), body);
    details.addEventListener('toggle', () => {
      this.open.set(file.shown, details.open);
      if (details.open) void this.#openFile(file, body);
    });
    details.open = this.open.get(file.shown) ?? (count > 0 || this.files.length === 1);
    return details;
  }

  /** @param {any} file @param {HTMLElement} body */
  async #openFile(file, body) {
    const key = JSON.stringify([file.change, file.turns, this.isSplit]);
    if (body.dataset.drawn === key) return;
    body.dataset.drawn = key;
    if (!body.firstChild) fill(body, h('p.hint', null, 'Loading…'));
    const before = this.files[this.files.findIndex((each) => each.path === file.path) - 1];
    const found = await this.app.trying('The diff could not be loaded', () => this.app.api.changes(this.session, { limit: 1, ...(before ? { after: before.path } : {}) }));
    if (body.dataset.drawn !== key) return; // it has changed again
    if (!found) { fill(body); body.dataset.drawn = ''; return; }
    const loaded = found.files.find((/** @type {any} */ each) => each.path === file.path) ?? file;
    const { diff, is_binary: isBinary, is_left_out: isLeftOut } = loaded.change;
    const onRow = (/** @type {any} */ row, /** @type {HTMLElement} */ node) => this.#commentable(file.shown, row, node);
    const label = `Changes of ${file.shown}`;
    const shown = diff ? (this.isSplit && innerWidth > 700 ? splitDiff(diff, { onRow, label }) : unifiedDiff(diff, { onRow, label }))
      : h('p.hint', null, isBinary ? 'It is no text.' : isLeftOut ? 'It is too large to be shown.' : 'There is nothing to show.');
    fill(body, h('p.made-by', null, turnsOf(loaded)), shown);
  }

  // ── comments ──

  /** A line that can be commented on. @param {string} path @param {any} row @param {HTMLElement} node */
  #commentable(path, row, node) {
    if (!['added', 'removed', 'same'].includes(row.kind)) return;
    const line = row.new ?? row.old;
    const side = row.new === null ? 'old' : 'new';
    node.dataset.line = String(line);
    const place = { path, line, side, quote: row.text };
    const act = () => this.#begin(place, node);
    if (this.drafts.has(keyOf(place))) queueMicrotask(act);
    node.prepend(h('button.comment-button', { aria: { label: `Comment on line ${line}` }, onclick: act }, '+'));
    for (const comment of this.comments) if (keyOf(comment) === keyOf(place)) queueMicrotask(() => this.#put(comment, (made) => rowOf(node).after(made)));
  }

  /** A new comment on a line. @param {Place} place @param {HTMLElement} node */
  #begin(place, node) {
    const key = keyOf(place);
    const row = rowOf(node);
    if (row.nextElementSibling instanceof HTMLElement && row.nextElementSibling.dataset.place === key) return;
    const save = (/** @type {string} */ text) => {
      const comment = { ...place, text };
      this.comments.push(comment);
      this.#put(comment, (made) => form.replaceWith(made));
      this.#commentsChanged();
    };
    const form = this.#form(place, key, 'Add to the next prompt', save, () => form.remove());
    form.dataset.place = key;
    row.after(form);
    focusOn(form);
  }

  /** Puts a comment where it belongs, or the form in which it is edited: until that is saved it stays as it is.
   * @param {Comment} comment @param {(node: HTMLElement) => void} put */
  #put(comment, put) {
    const again = () => this.#put(comment, (made) => node.replaceWith(made));
    const save = (/** @type {string} */ text) => { comment.text = text; again(); this.#commentsChanged(); };
    const isEdited = this.drafts.has(comment);
    const node = isEdited ? this.#form(comment, comment, 'Save', save, again) : this.#shownComment(comment, again);
    put(node);
    if (isEdited) focusOn(node);
  }

  /** @param {Place} place @param {string|Comment} key of the draft @param {string} says what its button does @param {(text: string) => void} save @param {() => void} leave */
  #form(place, key, says, save, leave) {
    const field = h('textarea', { rows: 3, placeholder: 'What should change here?', aria: { label: `Comment on line ${place.line} of ${place.path}` } });
    field.value = this.drafts.get(key) ?? '';
    const note = () => this.drafts.set(key, field.value);
    field.addEventListener('input', note);
    note();
    const end = () => {
      const text = field.value.trim();
      if (!text) return;
      this.drafts.delete(key);
      save(text);
    };
    field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); end(); } });
    return h('form.comment-form', { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); end(); } }, field,
      h('div.buttons', null, h('button.primary', { type: 'submit' }, says), h('button', { onclick: () => { this.drafts.delete(key); leave(); } }, 'Cancel')));
  }

  /** @param {Comment} comment @param {() => void} again draws it as it is now */
  #shownComment(comment, again) {
    const edit = () => { this.drafts.set(comment, comment.text); again(); };
    const remove = () => {
      this.comments = this.comments.filter((each) => each !== comment);
      node.remove();
      this.#commentsChanged();
    };
    const node = h('div.comment', null, h('p', { dir: 'auto' }, comment.text), h('span', null,
      h('button', { aria: { label: 'Edit this comment' }, onclick: edit }, 'Edit'),
      h('button', { aria: { label: 'Remove this comment' }, onclick: remove }, glyph('close'))));
    return node;
  }

  #commentBox() {
    this.box = h('div.comment-box', { hidden: !this.comments.length });
    this.#fillBox();
    return this.box;
  }

  #fillBox() {
    if (!this.box) return;
    this.box.hidden = !this.comments.length;
    fill(this.box, h('span', null, `${counted(this.comments.length, 'comment')} for the next prompt`), h('button.primary', { onclick: () => { this.app.composer.send(); if (matchMedia('(max-width: 1100px)').matches) this.toggle(false); } }, 'Send now')); // it lies over the answer
  }

  #commentsChanged() {
    this.#fillBox();
    keep(`comments ${this.session}`, this.comments.length ? JSON.stringify(this.comments) : '');
    later('composer', () => this.app.composer.drawState());
    const note = byId('comment-note');
    note.hidden = !this.comments.length;
    note.textContent = `${counted(this.comments.length, 'comment')} on changes will be sent along`;
  }

  /** The comments as a part of a prompt, one that is being edited as it stands. They are sent once. */
  takeComments() {
    if (!this.comments.length) return '';
    const texts = this.comments.map((each) => `- \`${each.path}\` line ${each.line}${each.side === 'old' ? ' (removed)' : ''}, ${quoted(each.quote)}:\n  ${(this.drafts.get(each)?.trim() || each.text).replaceAll('\n', '\n  ')}`);
    for (const each of this.comments) this.drafts.delete(each);
    this.comments = [];
    for (const body of this.bodies.values()) body.dataset.drawn = ''; // with comments, which are gone
    this.#commentsChanged();
    if (this.isShown && this.tab === 'changes') this.#draw();
    return `Comments on the changes:\n${texts.join('\n')}`;
  }
}

/** @param {Place} place */
const keyOf = ({ path, side, line }) => `${path}\n${side}${line}`;

/** Where somebody writes, also when the form is drawn anew; but what is written elsewhere goes on. @param {HTMLElement} form */
function focusOn(form) {
  const field = form.querySelector('textarea');
  if (document.activeElement === document.body || !field?.value) field?.focus();
}

/** The row that a line stands in: two of them share one in two columns. @param {HTMLElement} node */
const rowOf = (node) => /** @type {HTMLElement} */ (node.closest('.row') ?? node);

/** A line as code, whatever is in it. @param {string} line */
function quoted(line) {
  const ticks = '`'.repeat(1 + Math.max(0, ...[...line.matchAll(/`+/g)].map(([found]) => found.length)));
  const pad = ticks.length > 1 ? ' ' : '';
  return `${ticks}${pad}${oneLine(line).slice(0, 300)}${pad}${ticks}`;
}

/** @param {any} file */
function turnsOf(file) {
  const last = file.turns?.at(-1);
  const makers = [...new Set((file.turns ?? []).flatMap((/** @type {any} */ turn) => turn.made_by.map((/** @type {any} */ each) => oneLine(each.label || each.made_by))))];
  return `${counted(file.turns?.length ?? 0, 'turn')}${last ? `, last ${since(last.at)}` : ''}${makers.length ? ` · by ${makers.slice(0, 3).join(', ')}` : ''}`;
}
