// Arguments of a tool call by our names, also where the model used those of another agent. Without DOM.

import { decoded, own } from './text.js';

/** Of an argument: what others call it (protocol/argument_names.py). @type {Record<string, string[]>} */
const ALIASES = {
  file_path: ['path', 'file', 'filename', 'file_name', 'filepath', 'filePath', 'absolute_path', 'target_file'],
  path: ['directory', 'dir', 'dir_path', 'file_path', 'target_directory'],
  command: ['cmd', 'shell_command'],
  working_dir: ['cwd', 'workdir', 'working_directory', 'directory', 'dir_path'],
  background: ['run_in_background', 'is_background'],
  patch: ['input', 'patch_text', 'patchText'],
  pattern: ['regex', 'query', 'glob_pattern'],
  include: ['glob', 'include_pattern'],
  offset: ['start_line'],
  job_id: ['bash_id', 'shell_id', 'task_id'],
};

/** What is shown of our own tools' arguments (lines/calls.py). @type {Record<string, string[]>} */
const FIELDS = {
  bash: ['command', 'working_dir', 'background'],
  view: ['file_path', 'offset', 'limit'],
  edit: ['file_path'],
  multiedit: ['file_path'],
  apply_patch: ['patch'],
  write: ['file_path'],
  ls: ['path'],
  grep: ['pattern', 'path', 'include'],
  glob: ['pattern', 'path'],
  download: ['file_path', 'url'],
  job_output: ['job_id'],
  job_kill: ['job_id'],
};

/** Nothing is guessed: where a field is there already, or two names could stand for it, all stays as it is.
 * @param {{name: string, input: string}} call @returns {Record<string, any>} */
export function parametersOf(call) {
  const given = decoded(call.input);
  const fields = own(FIELDS, call.name) ?? [];
  /** @type {Map<string, string>} */
  const meant = new Map();
  for (const field of fields) {
    const [other, ...more] = (ALIASES[field] ?? []).filter((name) => Object.hasOwn(given, name) && !fields.includes(name));
    if (other && !more.length && !Object.hasOwn(given, field)) meant.set(other, meant.has(other) ? other : field);
  }
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [meant.get(name) ?? name, value]));
}
