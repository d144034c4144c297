// The panel beside a session: all its changes as a review, files of the workspace, jobs.

import { splitDiff, unifiedDiff } from './diff.js';
import { byId, fill, glyph, h, later } from './dom.js';
import { FilesTab } from './files.js';
import { JobsTab } from './jobs.js';
import { keep, kept, keptJson } from './store.js';
import { counted, oneLine, shortPath, since, visible } from './text.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {{path: string, line: number, side: string, quote: string, text: string}} Comment */

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
    /** What is being written about lines, by their place: the diff is drawn anew whenever a turn changes a file. @type {Map<string, string>} */
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
    const act = () => this.#write(path, { line, side, quote: row.text }, node);
    if (this.drafts.has(`${path}\n${side}${line}`)) queueMicrotask(act);
    node.prepend(h('button.comment-button', { aria: { label: `Comment on line ${line}` }, onclick: act }, '+'));
    for (const comment of this.comments) if (comment.path === path && comment.line === line && comment.side === side) queueMicrotask(() => rowOf(node).after(this.#shownComment(comment)));
  }

  /** @param {string} path @param {{line: number, side: string, quote: string}} at @param {HTMLElement} node */
  #write(path, at, node) {
    const place = `${path}\n${at.side}${at.line}`;
    const row = rowOf(node);
    if (row.nextElementSibling instanceof HTMLElement && row.nextElementSibling.dataset.place === place) return;
    const field = h('textarea', { rows: 3, placeholder: 'What should change here?', aria: { label: `Comment on line ${at.line} of ${path}` } });
    field.value = this.drafts.get(place) ?? '';
    const note = () => this.drafts.set(place, field.value);
    field.addEventListener('input', note);
    note();
    const save = () => {
      if (!field.value.trim()) return;
      this.drafts.delete(place);
      const comment = { path, ...at, text: field.value.trim() };
      this.comments.push(comment);
      form.replaceWith(this.#shownComment(comment));
      this.#commentsChanged();
    };
    const form = h('form.comment-form', { data: { place }, onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); save(); } }, field,
      h('div.buttons', null, h('button.primary', { type: 'submit' }, 'Add to the next prompt'), h('button', { onclick: () => { this.drafts.delete(place); form.remove(); } }, 'Cancel')));
    field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); save(); } });
    row.after(form);
    if (document.activeElement === document.body || !field.value) field.focus();
  }

  /** @param {Comment} comment */
  #shownComment(comment) {
    const node = h('div.comment', null, h('p', { dir: 'auto' }, comment.text), h('button', { aria: { label: 'Remove this comment' }, onclick: () => {
      this.comments = this.comments.filter((each) => each !== comment);
      node.remove();
      this.#commentsChanged();
    } }, glyph('close')));
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

  /** The comments as a part of a prompt. They are sent once. */
  takeComments() {
    if (!this.comments.length) return '';
    const texts = this.comments.map((each) => `- \`${each.path}\` line ${each.line}${each.side === 'old' ? ' (removed)' : ''}, ${quoted(each.quote)}:\n  ${each.text.replaceAll('\n', '\n  ')}`);
    this.comments = [];
    for (const body of this.bodies.values()) body.dataset.drawn = ''; // with comments, which are gone
    this.#commentsChanged();
    if (this.isShown && this.tab === 'changes') this.#draw();
    return `Comments on the changes:\n${texts.join('\n')}`;
  }
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
