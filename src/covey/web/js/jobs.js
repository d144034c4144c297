// Commands that sessions left running, with the end of their output.

import { longText } from './cards.js';
import { fill, h } from './dom.js';
import { lasted, oneLine } from './text.js';

const LOOK_MS = 3_000;

export class JobsTab {
  /** @param {import('./app.js').App} app */
  constructor(app) {
    this.app = app;
    this.node = h('div.jobs');
    /** @type {any} */
    this.timer = undefined;
    this.open = '';
    this.drawn = '';
  }

  stop() { clearInterval(this.timer); }

  async show() {
    this.stop();
    this.drawn = '';
    this.timer = setInterval(() => { if (!document.hidden) void this.#load(); }, LOOK_MS);
    await this.#load();
  }

  async #load() {
    try {
      const jobs = await this.app.api.jobs();
      const output = this.open ? (await this.app.api.job(this.open)).output ?? '' : '';
      const key = JSON.stringify([jobs.map((/** @type {any} */ job) => [job.id, job.is_running]), this.open, output.length, output.slice(-200)]);
      if (key === this.drawn) return;
      this.drawn = key;
      this.#draw(jobs, output);
    } catch { this.open = ''; }
  }

  /** @param {any[]} jobs @param {string} output */
  #draw(jobs, output) {
    fill(this.node, jobs.map((job) => h('div.job', { data: { running: job.is_running ? 'yes' : 'no' } }, h('div.job-head', null,
      h('button.job-name', { aria: { expanded: this.open === job.id }, onclick: () => { this.open = this.open === job.id ? '' : job.id; void this.#load(); } }, h('code', null, oneLine(job.command))),
      h('small', null, job.is_running ? `running ${lasted(Date.now() / 1000 - job.started_at)}` : job.was_killed ? 'ended by hand' : `ended${job.exit_code === null || job.exit_code === undefined ? '' : ` (${job.exit_code})`}`),
      job.is_running && h('button', { onclick: async () => { await this.app.trying('Not ended', () => this.app.api.killJob(job.id)); void this.#load(); } }, 'End')),
    this.open === job.id && longText(output || 'It has written nothing yet.'))),
    !jobs.length && h('div.nothing', null, h('b', null, 'Nothing runs in the background'), h('p', null, 'Servers and watchers that the agent starts appear here.')));
  }
}
