// Files of the workspace: found by a few letters, and read.

import { fill, h } from './dom.js';
import { highlightLater } from './highlight.js';
import { counted, oneLine, size, visible } from './text.js';

const LINES = 2_000;

export class FilesTab {
  /** @param {import('./app.js').App} app @param {import('./review.js').Review} review */
  constructor(app, review) {
    this.app = app;
    this.review = review;
    this.turn = 0;
    this.field = h('input', { type: 'search', placeholder: 'Find a file by a few letters', aria: { label: 'Find a file' }, autocomplete: 'off', spellcheck: false, oninput: () => void this.show() });
    this.list = h('ul.file-list');
    this.content = h('div.file-content', { hidden: true });
    this.node = h('div.files', null, this.field, this.list, this.content);
  }

  async show() {
    const mine = ++this.turn;
    this.content.hidden = true;
    this.list.hidden = false;
    const found = await this.app.trying('The files could not be listed', () => this.app.api.files(this.field.value));
    if (mine !== this.turn || !found) return;
    fill(this.list, found.files.map((/** @type {any} */ file) => h('li', null, h('button', { onclick: () => void this.read(file.path) }, visible(file.path)))),
      !found.files.length && h('li.nothing', null, this.field.value ? 'No file fits.' : 'There are no files here yet.'), found.is_partial && h('li.hint', null, 'There are more files than could be listed.'));
  }

  /** @param {string} path */
  async read(path) {
    const file = await this.app.trying('The file could not be read', () => this.app.api.fileContent(path));
    if (!file) return;
    const lines = file.text.split('\n');
    const text = document.createTextNode(visible(lines.slice(0, LINES).join('\n')).replaceAll('⟨U+000D⟩', ''));
    this.list.hidden = true;
    this.content.hidden = false;
    const left = lines.length - LINES;
    fill(this.content, h('div.file-head', null, h('button', { onclick: () => { this.content.hidden = true; this.list.hidden = false; } }, '← Files'), h('b', null, oneLine(path)), h('small', null, size(file.size)),
      h('button', { onclick: () => { this.app.composer.insert(`@${path} `); this.app.composer.focus(); } }, 'Mention')),
    h('pre', { tabIndex: 0 }, h('code', null, text)), (left > 0 || file.is_cut) && h('p.hint', null, left > 0 ? `${counted(left, 'more line')} not shown` : 'There is more of it than was sent.'));
    highlightLater(text, path.split('.').at(-1) ?? '');
  }
}
