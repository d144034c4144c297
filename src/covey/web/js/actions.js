// What can be done with a session, a turn and the page: menus, palettes, and the commands after a slash.

import { MODE_NAMES } from './app.js';
import { choices, menu, palette, show } from './dialogs.js';
import { byId, h } from './dom.js';
import { browserName, showLogin } from './login.js';
import { keep, kept } from './store.js';
import { addressOf, ago, baseName, counted, oneLine, shortPath, visible } from './text.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {{label: string, choose: () => void, isHarmful?: boolean, isChecked?: boolean}} Entry */

const MODE_SAYS = /** @type {Record<string, string>} */ ({
  ask: 'as your rules say', plan: 'looks, and changes nothing', accept_edits: 'edits are not asked about', sandboxed: 'neither are commands, which run without the network',
});

/** @param {App} app @param {import('./dashboard.js').Dashboard} dashboard */
export function bindActions(app, dashboard) {
  app.ownCommands = () => ownCommands(app);
  const on = (/** @type {string} */ id, /** @type {(event: Event) => void} */ act) => byId(id).addEventListener('click', act);
  on('new', () => app.newSession());
  on('find', () => openSessions(app));
  on('drawer', () => document.body.classList.toggle('drawer-open'));
  on('scrim', () => document.body.classList.remove('drawer-open'));
  on('panel-button', () => app.review.toggle());
  on('menu-button', () => menuOf(app));
  on('model', () => chooseModel(app));
  on('session-mode', () => chooseMode(app, byId('session-mode')));
  on('settings', (event) => menu(/** @type {Element} */ (event.currentTarget), pageEntries(app)));
  on('ideas', (event) => { if (event.target instanceof HTMLButtonElement) { app.composer.begin(event.target.textContent ?? ''); } });
  on('home', () => { location.hash = '#/home'; });
  on('yolo', () => void stopSkipping(app));
  byId('log').addEventListener('click', (/** @type {MouseEvent} */ event) => {
    const target = event.target instanceof Element ? event.target : null;
    const turn = target?.closest('.message-menu');
    if (turn instanceof HTMLElement) menu(turn, turnEntries(app, turn.dataset.run ?? '', turn.dataset.message ?? ''));
    const copy = target?.closest('[data-copy]');
    if (copy instanceof HTMLElement) void copyText(app, copy.closest('.code')?.querySelector('pre')?.textContent ?? '', copy);
  });
  void dashboard;
}

/** @param {App} app @param {string} text @param {HTMLElement} [button] */
async function copyText(app, text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // plain http from another machine has no clipboard
    const field = h('textarea', { value: text });
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
  if (button) { button.textContent = 'Copied'; setTimeout(() => { button.textContent = 'Copy'; }, 1500); } else app.toast('Copied');
}

/** @param {App} app */
async function stopSkipping(app) {
  if (await app.confirm({ title: 'Ask again?', text: 'Nobody is asked about anything in this workspace at the moment. If you go back, whatever no rule allows is asked about again.', yes: 'Ask again' })) {
    await app.trying('Not changed', () => app.api.skipPermissions(false));
  }
}

// ── the menu of a session ──

/** @param {App} app */
export function menuOf(app) {
  const session = app.record?.session;
  menu(byId('menu-button'), session ? sessionEntries(app, session) : settingEntries(app));
}

/** @param {App} app @param {any} session @returns {Entry[]} */
function sessionEntries(app, session) {
  const { id } = session;
  return [
    { label: 'Rename…', choose: () => void rename(app, session) },
    ...settingEntries(app),
    { label: 'Summarize and go on', choose: () => void app.trying('Not summarized', () => app.api.summarize(id)) },
    { label: 'Undo the last turn…', choose: () => void undo(app, '') },
    { label: 'Fork this session', choose: () => void fork(app, '') },
    { label: 'Copy a link to it', choose: () => void copyText(app, location.href) },
    { label: 'Export as Markdown', choose: () => void download(app, 'markdown') },
    { label: 'Export as JSON', choose: () => void download(app, 'json') },
    { label: session.archived_at ? 'Take it back' : 'Archive', choose: () => void archive(app, session) },
    { label: 'Delete…', isHarmful: true, choose: () => void remove(app, session) },
  ];
}

/** @param {App} app @param {any} session */
async function rename(app, session) {
  const title = await app.ask({ title: 'Rename the session', label: 'Title', value: session.title, yes: 'Rename' });
  if (title) await app.trying('Not renamed', () => app.api.updateSession(session.id, { title }));
}

/** @param {App} app @param {any} session */
async function archive(app, session) {
  await app.trying('Not archived', () => app.api.updateSession(session.id, { archived: !session.archived_at }));
  if (!session.archived_at) app.newSession();
}

/** @param {App} app @param {any} session */
async function remove(app, session) {
  if (!(await app.confirm({ title: 'Delete this session?', text: 'Its messages are gone for good, and what runs in it ends. Files stay as they are.', detail: app.titleOf(session.id), yes: 'Delete', isHarmful: true }))) return;
  await app.trying('Not deleted', () => app.api.deleteSession(session.id));
  app.newSession();
}

/** @param {App} app @param {string} format */
async function download(app, format) {
  const blob = await app.trying('Not exported', () => app.api.export(app.view.current, format));
  if (!blob) return;
  const url = URL.createObjectURL(blob);
  const name = app.titleOf(app.view.current).replace(/[^\w-]+/g, '-').slice(0, 60) || 'session';
  h('a', { href: url, download: `${name}.${format === 'json' ? 'json' : 'md'}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// ── turns ──

/** @param {App} app @param {string} runId @param {string} messageId @returns {Entry[]} */
function turnEntries(app, runId, messageId) {
  return [
    { label: 'Undo from here…', choose: () => void undo(app, runId) },
    { label: 'Fork up to here', choose: () => void fork(app, lastMessageOf(app, runId)) },
    { label: 'Copy a link to this', choose: () => { const { workspace, session } = app.route; void copyText(app, location.href.split('#')[0] + addressOf(workspace, session, messageId)); } },
  ];
}

/** @param {App} app @param {string} runId */
const lastMessageOf = (app, runId) => app.view.messages.list().filter((message) => message.run_id === runId).at(-1)?.id ?? '';

/** With a preview of what would be taken back. @param {App} app @param {string} runId */
async function undo(app, runId) {
  const id = app.view.current;
  const preview = await app.trying('Nothing can be undone', () => app.api.undo(id, { run_id: runId, dry_run: true }));
  if (!preview) return;
  const restored = (preview.restored ?? []).map((/** @type {string} */ path) => shortPath(path, app.root));
  const keepFiles = h('input', { type: 'checkbox' });
  const list = (/** @type {string} */ title, /** @type {any[]} */ items) => items.length ? [h('b', null, title), h('ul', null, items.slice(0, 50).map((item) => h('li', null, item)), items.length > 50 && h('li', null, `and ${items.length - 50} more`))] : [];
  const conflicts = (preview.conflicts ?? []).map((/** @type {any} */ each) => `${shortPath(each.path, app.root)}: ${oneLine(each.reason)}`);
  const skipped = (preview.skipped ?? []).map((/** @type {any} */ each) => `${shortPath(each.path, app.root)}: ${oneLine(each.reason)}`);
  const answer = await show('Undo', [
    h('div.undo', null, h('p', null, `Takes back ${counted(preview.undone.length, 'turn')} and ${counted(preview.removed_messages, 'message')}:`),
      h('ul', null, preview.undone.map((/** @type {any} */ turn) => h('li', null, oneLine(turn.prompt).slice(0, 200)))),
      list('Files put back', restored), list('Stays as it is', skipped), list('Changed by somebody else since', conflicts),
      preview.untracked ? h('p.hint', null, 'Not all that commands changed is known: what else they changed stays.') : null,
      h('label.check', null, keepFiles, 'Only the messages: leave the files as they are')),
    choices(conflicts.length ? 'Undo, and overwrite those files' : 'Undo', true),
  ]);
  if (answer !== 'yes') return;
  const forced = keepFiles.checked ? [] : (preview.conflicts ?? []).map((/** @type {any} */ each) => each.path);
  const receipt = await app.trying('Not undone', () => app.api.undo(id, { run_id: runId, keep_files: keepFiles.checked, force_files: forced }));
  const first = receipt?.undone[0]?.prompt;
  if (first && !app.composer.parts.field.value) app.composer.insert(first);
  app.review.isStale = true;
  if (app.review.isShown) app.review.refresh();
}

/** @param {App} app @param {string} messageId */
async function fork(app, messageId) {
  const made = await app.trying('Not forked', () => app.api.fork(app.view.current, messageId ? { message_id: messageId } : {}));
  if (made) { app.openSession(made.id); app.toast('This is the fork; the other session stays as it is.'); }
}

// ── model and mode ──

/** What a session has from its beginning. On a phone there is no room for it but here. @param {App} app @returns {Entry[]} */
const settingEntries = (app) => [
  { label: `Model: ${app.modelName}…`, choose: () => chooseModel(app) },
  { label: `Mode: ${app.modeName}…`, choose: () => chooseMode(app) },
];

/** @param {App} app @param {Element} [anchor] */
const chooseMode = (app, anchor = byId('menu-button')) => menu(anchor, modeEntries(app));

/** @param {App} app */
function chooseModel(app) {
  const config = app.view.workspace?.config;
  const large = config?.models?.large;
  const standard = large ? `${large.provider}/${large.model}` : '';
  const all = Object.values(config?.providers ?? {}).flatMap((/** @type {any} */ provider) => provider.models.map((/** @type {any} */ model) => ({ id: `${provider.id}/${model.id}`, name: model.name || model.id, provider: provider.name, window: model.context_window })));
  const current = app.record?.session?.model || standard;
  void palette({
    title: 'Model of this session', label: 'Find a model', empty: 'No model is configured: see `covey models`.',
    items: (typed) => all.filter((each) => `${each.id} ${each.name}`.toLowerCase().includes(typed.toLowerCase())).slice(0, 100),
    draw: (each) => [h('b', null, oneLine(each.name)), h('small', null, ` ${oneLine(each.provider)}${each.window ? ` · ${Math.round(each.window / 1000)}k` : ''}${each.id === current ? ' · in use' : ''}`)],
    choose: (each) => void setOn(app, { model: each.id === standard ? '' : each.id }),
  });
}

/** A new session begins with what was chosen for it. @param {App} app @param {any} change */
async function setOn(app, change) {
  if (!app.view.current) {
    const made = await app.trying('Not changed', () => app.api.createSession());
    if (!made) return;
    app.openSession(made.id);
  }
  await app.trying('Not changed', () => app.api.updateSession(app.view.current, change));
}

/** @param {App} app @returns {Entry[]} */
function modeEntries(app) {
  const current = app.record?.session?.mode ?? 'ask';
  return Object.entries(MODE_NAMES).map(([mode, name]) => ({ label: `${name}: ${MODE_SAYS[mode]}`, isChecked: mode === current, choose: () => void setOn(app, { mode }) }));
}

// ── the page itself ──

/** @param {App} app @returns {Entry[]} */
function pageEntries(app) {
  const theme = kept('theme') || 'system';
  const themes = ['system', 'light', 'dark'].map((name) => ({ label: `Theme: ${name}`, isChecked: theme === name, choose: () => setTheme(name) }));
  return [
    ...themes,
    { label: app.notifier.isOn ? 'Notifications: on' : 'Notifications: off', choose: () => void app.notifier.toggle() },
    { label: 'All commands  Ctrl /', choose: () => openPalette(app) },
    { label: 'Keys  ?', choose: showKeys },
    { label: `Sign out ${browserName()}`, isHarmful: true, choose: () => void signOut(app) },
  ];
}

/** @param {string} name */
export function setTheme(name) {
  keep('theme', name === 'system' ? '' : name);
  document.documentElement.dataset.theme = name;
}

/** @param {App} app */
async function signOut(app) {
  await app.trying('Not signed out', () => app.api.signOut());
  app.port.postMessage({ type: 'bye' });
  showLogin('You are signed out.');
}

/** @param {App} app */
function ownCommands(app) {
  return [
    { name: 'new', about: 'a new session', run: () => app.newSession() },
    { name: 'model', about: 'the model of this session', run: () => chooseModel(app) },
    { name: 'mode', about: 'what is asked about', run: () => chooseMode(app) },
    { name: 'undo', about: 'take the last turn back, with its files', run: () => void undo(app, '') },
    { name: 'fork', about: 'go on in a copy', run: () => void fork(app, '') },
    { name: 'summarize', about: 'make room in the context', run: () => void app.trying('Not summarized', () => app.api.summarize(app.view.current)) },
    { name: 'changes', about: 'what this session has changed', run: () => app.review.toggle(true, 'changes') },
    { name: 'files', about: 'files of the workspace', run: () => app.review.toggle(true, 'files') },
    { name: 'jobs', about: 'what runs in the background', run: () => app.review.toggle(true, 'jobs') },
    { name: 'export', about: 'this session as Markdown', run: () => void download(app, 'markdown') },
    { name: 'stop', about: 'stop what runs', run: () => app.stop() },
  ];
}

/** @param {App} app */
export function openPalette(app) {
  const more = [
    { name: 'search', about: 'sessions and messages', run: () => openSessions(app) },
    { name: 'server', about: 'what goes on everywhere', run: () => { location.hash = '#/home'; } },
    { name: 'archived', about: 'sessions that were put aside', run: () => openArchived(app) },
    { name: 'keys', about: 'what the keys do', run: showKeys },
    ...['system', 'light', 'dark'].map((name) => ({ name: `theme ${name}`, about: 'how the page looks', run: () => setTheme(name) })),
  ];
  const custom = async () => (await app.customCommands()).map(({ name, about }) => ({ name: `/${name}`, about, run: () => app.composer.begin(`/${name} `) }));
  void palette({
    title: 'Commands', label: 'What would you like to do?',
    items: async (typed) => [...ownCommands(app), ...more, ...await custom()].filter((each) => `${each.name} ${each.about}`.toLowerCase().includes(typed.toLowerCase())),
    draw: (each) => [h('b', null, oneLine(each.name)), h('small', null, ` ${oneLine(each.about)}`)],
    choose: (each) => each.run(),
  });
}

/** Sessions by title at once, and what was said in them, in this workspace first and then in others. @param {App} app */
export function openSessions(app) {
  const known = () => app.sessions.rows.map(({ session }) => ({ ...session, session_id: session?.id, at: session?.updated_at }));
  const isHere = (/** @type {any} */ hit) => !hit.workspace_id || hit.workspace_id === app.api.workspaceId;
  void palette({
    title: 'Sessions', label: 'Find a session, or words that were said', empty: 'Nothing was found.',
    items: async (typed) => {
      const words = typed.trim().toLowerCase();
      const titled = known().filter((each) => app.titleOf(each.session_id ?? '').toLowerCase().includes(words)).slice(0, 30);
      if (words.length < 2) return titled;
      const [here = [], all = []] = await Promise.all([app.api.search(words), app.api.searchEverywhere(words)].map((found) => found.then(({ titles, messages }) => [...titles, ...messages]).catch(() => [])));
      const isNew = (/** @type {any} */ hit) => hit.message_id || !titled.some((each) => each.session_id === hit.session_id);
      return [...titled, ...here.filter(isNew), ...all.filter((/** @type {any} */ hit) => !isHere(hit))];
    },
    draw: (/** @type {any} */ hit) => [h('b', null, oneLine(hit.title) || 'New session'), h('small', null, [` ${ago(hit.at)}`, isHere(hit) ? '' : baseName(hit.path), hit.archived ? 'archived' : ''].filter(Boolean).join(' · ')), hit.message_id && h('p', null, excerpt(hit))],
    choose: (/** @type {any} */ hit) => { if (isHere(hit)) app.openSession(hit.session_id, hit.message_id); else location.hash = addressOf(hit.workspace_id, hit.session_id, hit.message_id); },
  });
}

/** What was found, with the words that were looked for. @param {{snippet: string, marks: [number, number][]}} hit */
function excerpt({ snippet, marks }) {
  const letters = [...snippet];
  const piece = (/** @type {number} */ from, /** @type {number} */ to) => visible(letters.slice(from, to).join(''));
  const ends = [0, ...marks.map(([, end]) => end)];
  return [...marks.flatMap(([from, to], index) => [piece(ends[index] ?? 0, from), h('b', null, piece(from, to))]), piece(ends.at(-1) ?? 0, letters.length), '…'];
}

/** @param {App} app */
function openArchived(app) {
  const archived = [...app.view.sessions.records.values()].filter((record) => record.session?.archived_at).map((record) => /** @type {any} */ (record.session));
  void palette({
    title: 'Archived sessions', label: 'Find one', empty: 'Nothing was put aside.',
    items: (typed) => archived.filter((session) => session.title.toLowerCase().includes(typed.toLowerCase())),
    draw: (session) => [h('b', null, oneLine(session.title) || 'New session'), h('small', null, ` ${ago(session.updated_at)}`)],
    choose: (session) => app.openSession(session.id),
  });
}

export function showKeys() {
  const keys = [['Enter', 'send (on a phone: a new line)'], ['Shift Enter', 'a new line'], ['Alt Enter', 'send the other way: steer instead of queue'], ['Esc Esc', 'stop'],
    ['Ctrl K', 'sessions and search'], ['Ctrl /', 'all commands'], ['Alt N', 'a new session'], ['Alt A', 'to what is asked'], ['y · n', 'allow once or deny, with the card focused'],
    ['Alt R', 'changes, files and jobs'], ['[ · ]', 'the session before and after'], ['m', 'the menu of the session'], ['/', 'to the prompt'], ['?', 'this']];
  void show('Keys', [h('table.keys', null, h('tbody', null, keys.map(([key, what]) => h('tr', null, h('th', { scope: 'row' }, h('kbd', null, key)), h('td', null, what)))))]);
}
