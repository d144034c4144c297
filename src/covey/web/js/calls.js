// What a tool call does and what came of it, in a few words. Without DOM.

import { parametersOf } from './arguments.js';
import { counted, decoded, oneLine, own, shortPath, size } from './text.js';

/** @typedef {{verb: string, what: string, note: string}} Headline */

/** @param {any} params @param {string} name */
const text = (params, name) => oneLine(String(params[name] ?? ''));

const PATCHED = /^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$/gm;
const PATCHED_NAMED = 3;

/** @param {string} verb @returns {(params: any, root: string) => Headline} */
const changes = (verb) => (params, root) => ({ verb, what: shortPath(params.file_path, root), note: '' });

/** @type {Record<string, (params: any, root: string) => Headline>} */
const FORMATS = {
  bash: (params, root) => {
    const [first = '', ...more] = String(params.command ?? '').trim().split('\n');
    const where = params.working_dir ? `in ${shortPath(params.working_dir, root)}` : '';
    const note = [more.length ? counted(more.length, 'more line') : '', where, params.background ? 'in the background' : ''];
    return { verb: '$', what: oneLine(first), note: note.filter(Boolean).join(' · ') };
  },
  view: (params, root) => {
    const from = Number(params.offset) || 1;
    const place = params.limit ? `lines ${from}–${from + Number(params.limit) - 1}` : from > 1 ? `from line ${from}` : '';
    return { verb: 'Read', what: shortPath(params.file_path, root), note: place };
  },
  edit: changes('Edit'),
  multiedit: changes('Edit'),
  write: changes('Write'),
  apply_patch: (params, root) => { // also where it is not valid
    const names = [...String(params.patch ?? '').matchAll(PATCHED)].map(([, name = '']) => shortPath(name.trim(), root));
    const more = names.length - PATCHED_NAMED;
    return { verb: 'Patch', what: names.slice(0, PATCHED_NAMED).join(', ') || 'files', note: more > 0 ? `and ${more} more` : '' };
  },
  ls: (params, root) => ({ verb: 'List', what: shortPath(params.path ?? '.', root), note: '' }),
  grep: (params, root) => ({ verb: 'Search', what: `“${text(params, 'pattern')}”`, note: [params.path && `in ${shortPath(params.path, root)}`, text(params, 'include')].filter(Boolean).join(' ') }),
  glob: (params, root) => ({ verb: 'Find', what: text(params, 'pattern'), note: params.path ? `in ${shortPath(params.path, root)}` : '' }),
  fetch: (params) => ({ verb: 'Fetch', what: text(params, 'url'), note: '' }),
  download: (params, root) => ({ verb: 'Download', what: text(params, 'url'), note: `to ${shortPath(params.file_path, root)}` }),
  agent: (params) => ({ verb: 'Agent', what: text(params, 'prompt'), note: '' }),
  todos: (params) => ({ verb: 'Plan', what: counted(Array.isArray(params.todos) ? params.todos.length : 0, 'item'), note: '' }),
  question: (params) => ({ verb: 'Ask', what: oneLine(String(params.questions?.[0]?.question ?? '')), note: '' }),
  job_output: (params) => ({ verb: 'Output of', what: text(params, 'job_id'), note: '' }),
  job_kill: (params) => ({ verb: 'End', what: text(params, 'job_id'), note: '' }),
};

/** @param {{name: string, input: string}} call @param {string} root @returns {Headline} */
export function headline(call, root) {
  const params = parametersOf(call);
  const format = own(FORMATS, call.name);
  if (format) return format(params, root);
  const pieces = Object.entries(params).map(([key, value]) => `${oneLine(key)}=${oneLine(typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 60)}`);
  return { verb: oneLine(call.name), what: pieces.join(' '), note: '' };
}

/** What is telling about a result. @param {any} facts */
export function summary(facts) {
  if (typeof facts.exit_code === 'number' && facts.exit_code) return `exit code ${facts.exit_code}`;
  const found = [];
  if (typeof facts.status === 'number') found.push(String(facts.status));
  if (typeof facts.matches === 'number') found.push(counted(facts.matches, 'match', 'matches'));
  if (typeof facts.count === 'number') found.push(counted(facts.count, 'file'));
  if (typeof facts.entries === 'number') found.push(counted(facts.entries, 'entry', 'entries'));
  if (typeof facts.lines === 'number') found.push(counted(facts.lines, 'line'));
  if (typeof facts.bytes === 'number') found.push(size(facts.bytes));
  if (typeof facts.job_id === 'string') found.push(oneLine(facts.job_id));
  return found.join(', ');
}

/** How the results of calls begin that a cancel has ended. */
const STOPPED = ['The call was cancelled before it finished.', 'The run ended before the call began.'];

/** How a call stands: `writing` its input, `running`, `done`, `failed`, `denied` or `stopped`.
 * @param {{finished: boolean}} call @param {any} result */
export function standing(call, result) {
  if (!result) return call.finished ? 'running' : 'writing';
  if (result.is_error && STOPPED.some((words) => result.content.startsWith(words))) return 'stopped';
  const facts = decoded(result.metadata);
  if (result.is_error) return facts.denied ? 'denied' : 'failed';
  return facts.exit_code ? 'failed' : 'done';
}
