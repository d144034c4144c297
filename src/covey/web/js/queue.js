// Prompts on their way and prompts that wait: edit, move, drop. What is edited is parked, so that nothing moves under one's hands.

import { ApiError } from './api.js';
import { fill, glyph, h, iconButton } from './dom.js';
import { oneLine } from './text.js';

/** @typedef {import('./app.js').App} App */

export class QueueDock {
  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.app = app;
    this.root = root;
    this.drawn = '';
    this.editing = '';
  }

  draw() {
    const { view } = this.app;
    const waiting = this.app.record?.queue ?? [];
    const sent = [...view.outbox.prompts.values()].filter((each) => each.prompt.session_id === view.current);
    const key = JSON.stringify([view.current, this.app.record?.keepsOthersOut, waiting.map((run) => [run.run_id, run.prompt, run.parked_by]), sent.map((each) => [each.prompt.run_id, each.state, each.error])]);
    if (key === this.drawn) return;
    if (this.editing && waiting.some((run) => run.run_id === this.editing)) return; // somebody types in it
    this.editing = '';
    this.drawn = key;
    fill(this.root, sent.map((each) => this.#sent(each)), waiting.length ? h('p.queue-head', null, `${waiting.length} waiting`) : null,
      waiting.length ? h('ol.queue-list', null, waiting.map((run, index) => this.#waiting(run, index, waiting))) : null);
  }

  /** @param {any} each */
  #sent({ prompt, state, error }) {
    if (state !== 'refused') return h('div.sent', { data: { run: prompt.run_id } }, glyph('busy'), h('span', null, oneLine(prompt.prompt ?? '')), h('small', null, state === 'sending' ? 'sending…' : 'accepted'));
    return h('div.sent.refused', { data: { run: prompt.run_id } }, h('span', null, oneLine(prompt.prompt ?? '')), h('p', null, oneLine(error)),
      h('div.buttons', null, h('button', { onclick: () => this.app.shell.post(prompt) }, 'Send again'),
        h('button', { onclick: () => { this.app.shell.drop(prompt.run_id); this.app.composer.insert(prompt.prompt ?? ''); this.app.composer.focus(); } }, 'Back to the draft'),
        h('button', { onclick: () => this.app.shell.drop(prompt.run_id) }, 'Drop')));
  }

  /** @param {any} run @param {number} index @param {any[]} all */
  #waiting(run, index, all) {
    const note = run.parked_by ? 'held back' : run.mode === 'fold' && !this.app.record?.keepsOthersOut && 'joins the turn';
    const item = h('li', { data: { run: run.run_id } }, h('span.queued-text', { title: oneLine(run.prompt) }, oneLine(run.prompt)), note && h('small', null, note),
      h('span.queue-buttons', null,
        index > 0 && iconButton('up', 'Sooner', () => this.#change(run, { before: all[index - 1].run_id })),
        index < all.length - 1 && iconButton('down', 'Later', () => this.#change(run, { after: all[index + 1].run_id })),
        iconButton('edit', 'Edit', () => this.#edit(run, item)),
        run.parked_by ? iconButton('play', 'Let it run', () => this.#change(run, { unpark: true })) : iconButton('pause', 'Hold it back', () => this.#change(run, { park: true })),
        iconButton('close', 'Drop', () => void this.app.trying('Not dropped', () => this.app.api.dropPrompt(run.session_id, run.run_id)))));
    return item;
  }

  /** @param {any} run @param {any} change */
  async #change(run, change) {
    try {
      await this.app.api.editPrompt(run.session_id, run.run_id, change);
      return true;
    } catch (error) {
      const isLate = error instanceof ApiError && error.code === 'too_late';
      this.app.toast(isLate ? 'It is already running, so it can no longer be changed.' : /** @type {Error} */ (error).message);
      return false;
    }
  }

  /** In its place, and held back meanwhile; what was held back before stays so. @param {any} run @param {HTMLElement} item */
  async #edit(run, item) {
    this.editing = run.run_id;
    const goesOn = run.parked_by ? {} : { unpark: true };
    const field = h('textarea', { value: run.prompt, rows: 2, aria: { label: 'The queued prompt' } });
    const done = () => { this.editing = ''; this.drawn = ''; this.draw(); };
    const save = async () => { if (await this.#change(run, { prompt: field.value, ...goesOn })) done(); };
    const cancel = async () => { if (run.parked_by || await this.#change(run, goesOn)) done(); };
    fill(item, field, h('div.buttons', null, h('button.primary', { onclick: save }, 'Save'), h('button', { onclick: cancel }, 'Cancel')));
    field.focus();
    if (!run.parked_by && !(await this.#change(run, { park: true }))) done();
  }
}
