// What waits for a person: permissions and questions. Nothing that began before a card was there ever answers it.

import { unifiedDiff } from './diff.js';
import { fill, glyph, h, marked } from './dom.js';
import { oneLine, shortPath, visible } from './text.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./types.js').AskRequest} AskRequest */

const ARMED_MS = 400;
/** A click or a key that was meant for something else has come by then. */
const COVERS = /** @type {Record<string, string>} */ ({ execute: 'this very command', write: 'changes to this file', read: 'this very file' });
const ACTIONS = /** @type {Record<string, string>} */ ({ execute: 'wants to run', write: 'wants to change', read: 'wants to read', fetch: 'wants to fetch', delete: 'wants to delete' });

export class AskDock {
  /** @param {App} app @param {HTMLElement} root */
  constructor(app, root) {
    this.app = app;
    this.root = root;
    /** @type {Map<string, {node: HTMLElement, setBusy: (isBusy: boolean) => void}>} */
    this.cards = new Map();
    this.elsewhere = h('div.elsewhere');
    root.append(this.elsewhere);
  }

  draw() {
    const { view } = this.app;
    const open = [...view.asks.open.values()];
    const here = open.filter((ask) => ask.kind === 'approval' || this.app.isInShown(ask.request.session_id));
    const ids = new Set(here.map((ask) => ask.request.id));
    for (const [id, card] of this.cards) if (!ids.has(id)) this.#leave(id, card);
    for (const ask of here) {
      let card = this.cards.get(ask.request.id);
      if (!card) {
        const build = ask.kind === 'permission' ? permissionCard : ask.kind === 'question' ? questionCard : approvalCard;
        card = build(this.app, ask.request);
        this.cards.set(ask.request.id, card);
        this.root.insertBefore(card.node, this.elsewhere);
      }
      card.setBusy(ask.isBeingAnswered);
    }
    this.#drawElsewhere(open.filter((ask) => !here.includes(ask)));
    this.root.dataset.count = String(here.length);
  }

  /** @param {string} id @param {{node: HTMLElement}} card */
  #leave(id, card) {
    const hadFocus = card.node.contains(document.activeElement);
    card.node.remove();
    this.cards.delete(id);
    if (hadFocus) this.app.composer.focus();
    const closed = this.app.view.asks.closed.get(id);
    if (closed && !this.app.answeredHere.has(id)) this.app.toast(closedWords(closed));
  }

  /** @param {any[]} asks */
  #drawElsewhere(asks) {
    const sessions = [...new Set(asks.map((ask) => ask.request.session_id))];
    fill(this.elsewhere, sessions.map((id) => h('button.ask-elsewhere', { onclick: () => this.app.openSession(id) },
      glyph('ask'), h('b', null, this.app.titleOf(id)), ' needs you')));
  }

  focus() { this.root.querySelector('.ask')?.querySelector('button')?.focus(); }
}

/** @param {{outcome: string, by: string|null}} closed */
function closedWords({ outcome, by }) {
  const words = /** @type {Record<string, string>} */ ({ allowed: 'Allowed', denied: 'Denied', answered: 'Answered', not_answered: 'Left unanswered', closed: 'No longer asked: the run has ended' });
  return `${words[outcome] ?? 'Closed'}${by ? ` by ${oneLine(by)}` : ''}`;
}

/** @param {string} label @param {string} kind @param {() => void} act */
function button(label, kind, act) {
  const node = h(`button${kind ? `.${kind}` : ''}`, { disabled: true, onclick: act }, label);
  setTimeout(() => { node.disabled = node.dataset.busy === 'yes'; node.dataset.armed = 'yes'; }, ARMED_MS);
  return node;
}

/** @param {HTMLElement} node @param {HTMLElement} status */
function busySetter(node, status) {
  return (/** @type {boolean} */ isBusy) => {
    for (const each of node.querySelectorAll('button')) {
      each.dataset.busy = isBusy ? 'yes' : '';
      each.disabled = isBusy || each.dataset.armed !== 'yes';
    }
    if (isBusy) status.textContent = 'Sending your answer…';
    else if (status.textContent === 'Sending your answer…') status.textContent = '';
  };
}

/** Send an answer, and say so if it did not take effect. @param {App} app @param {string} id @param {() => Promise<any>} send @param {HTMLElement} status */
async function answer(app, id, send, status) {
  try {
    app.answeredHere.add(id);
    const counted = await app.shell.answer(id, send);
    if (!counted) app.toast('Somebody else was faster: your answer did not count.');
  } catch (error) {
    app.answeredHere.delete(id);
    status.textContent = `Not answered: ${/** @type {Error} */ (error).message} Try again.`;
  }
}

/** @param {App} app @param {AskRequest} request */
function permissionCard(app, request) {
  const status = h('p.status', { role: 'status' });
  const network = h('input', { type: 'checkbox', checked: request.asks_for === 'network' });
  const grant = (/** @type {string} */ action, /** @type {any} */ more = {}) => () => void answer(app, request.id, () => app.api.grant({
    permission: { id: request.id }, action, ...(action !== 'deny' && network.checked ? { network: true } : {}), ...more,
  }), status);
  const session = button(`In this session: ${COVERS[request.action] ?? 'exactly this'}`, 'wide', grant('allow_session'));
  const more = [
    request.rules?.length ? button(`Always here: ${oneLine(request.rules.join(' '))}`, 'rule', grant('allow_always')) : null,
    request.prefix_rules?.length ? button(`Always here: ${oneLine(request.prefix_rules.at(-1) ?? '')}`, 'rule', grant('allow_prefix')) : null,
    request.confined ? button('Once, outside the sandbox', 'danger', grant('allow', { unsandboxed: true })) : null,
    button('Deny and say why…', '', () => void denyWithWords(app, request, status)),
  ];
  const buttons = h('div.buttons', null, button('Allow once', 'primary', grant('allow')), session, button('Deny', '', grant('deny')));
  const node = h('section.ask.permission', { tabIndex: -1, data: { ask: request.id }, aria: { label: `Permission: ${oneLine(request.tool_name)}` } },
    h('header', null, glyph('ask'), h('b', null, oneLine(request.tool_name)), ` ${ACTIONS[request.action] ?? oneLine(request.action)}`,
      request.params?.diff && h('b', null, ` ${shortPath(request.params.file_path ?? request.description, app.root)}`), h('small', null, `in ${oneLine(request.path)}`)),
    h('div.ask-body', null, subject(request), reasons(request)), buttons,
    request.confined || request.network ? h('label.check', null, network, 'and let it use the network') : null,
    h('div.buttons.further', null, more), status);
  node.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    const at = { y: 0, n: 2 }[event.key];
    const chosen = at === undefined ? null : buttons.children[at];
    if (chosen instanceof HTMLButtonElement && !chosen.disabled) { event.preventDefault(); chosen.click(); }
  });
  return { node, setBusy: busySetter(node, status) };
}

/** @param {App} app @param {AskRequest} request @param {HTMLElement} status */
async function denyWithWords(app, request, status) {
  const reason = await app.ask({ title: 'Deny, and tell the agent why', label: 'What should it do instead?', yes: 'Deny' });
  if (reason !== null) await answer(app, request.id, () => app.api.grant({ permission: { id: request.id }, action: 'deny', reason }), status);
}

/** The whole of what would be done, with every character seen. @param {AskRequest} request */
function subject(request) {
  const params = request.params ?? {};
  if (typeof params.diff === 'string' && params.diff) {
    return unifiedDiff(params.diff, { label: 'The change' });
  }
  const command = typeof params.command === 'string' ? params.command : '';
  const where = params.working_dir ? h('p.path', null, `in ${visible(String(params.working_dir))}`) : null;
  return [h('pre.command', { tabIndex: 0 }, visible(command || request.description)), where];
}

/** @param {AskRequest} request */
function reasons(request) {
  const texts = [request.reason, request.network && !request.asks_for ? 'It probably needs the network.' : '', request.sandbox].filter(Boolean);
  return texts.length ? h('p.reasons', null, marked(visible(texts.join(' ')))) : null;
}

/** @param {App} app @param {AskRequest} request */
function questionCard(app, request) {
  const status = h('p.status', { role: 'status' });
  const items = (request.questions ?? []).map((item, index) => questionItem(item, `${request.id}-${index}`));
  const send = () => {
    const responses = items.map((item) => item.response());
    const missing = items.find((item, index) => !responses[index]);
    if (missing) { status.textContent = 'Answer every question, or let the agent go on alone.'; missing.focus(); return; }
    void answer(app, request.id, () => app.api.answer(request.id, responses), status);
  };
  const node = h('section.ask.question', { tabIndex: -1, data: { ask: request.id }, aria: { label: 'Question' } },
    h('header', null, glyph('question'), h('b', null, 'The agent asks')), h('div.ask-body', null, items.map((item) => item.node)),
    h('div.buttons', null, button('Answer', 'primary', send), button('Go on without me', 'wide', () => void answer(app, request.id, () => app.api.answer(request.id, []), status))), status);
  return { node, setBusy: busySetter(node, status) };
}

/** @param {any} item @param {string} name */
function questionItem(item, name) {
  const choices = item.type === 'yes_no' ? [{ id: 'yes', label: 'Yes' }, { id: 'no', label: 'No' }] : item.choices ?? [];
  const kind = item.type === 'multi_choice' ? 'checkbox' : 'radio';
  const inputs = choices.map((/** @type {any} */ choice) => h('input', { type: kind, name, value: choice.id }));
  const notes = h('textarea', { rows: item.type === 'free_text' ? 3 : 1, placeholder: item.type === 'free_text' ? 'Your answer' : 'A note, if you like', aria: { label: item.type === 'free_text' ? 'Your answer' : 'A note' } });
  const node = h('fieldset', null, h('legend', null, visible(item.question)), item.description && h('p', null, visible(item.description)),
    choices.map((/** @type {any} */ choice, /** @type {number} */ index) => h('label.check', null, inputs[index], h('span', null, visible(choice.label), choice.description && h('small', null, ` ${visible(choice.description)}`)))), notes);
  return {
    node,
    focus: () => (inputs[0] ?? notes).focus(),
    response: () => {
      const selected = inputs.filter((/** @type {any} */ input) => input.checked).map((/** @type {any} */ input) => input.value);
      const text = notes.value.trim();
      if (item.type === 'free_text') return text ? { request_id: item.id, fill_in_text: text } : null;
      if (!selected.length) return null;
      const notesGiven = text ? { notes: text } : {};
      return item.type === 'yes_no' ? { request_id: item.id, yes: selected[0] === 'yes', ...notesGiven } : { request_id: item.id, selected_ids: selected, ...notesGiven };
    },
  };
}

/** What an extension would execute, or tell the model: all of it is shown before anybody approves. @param {App} app @param {any} request */
function approvalCard(app, request) {
  const status = h('p.status', { role: 'status' });
  const give = (/** @type {boolean} */ approve) => () => void answer(app, request.id, () => app.api.approve(request.id, approve), status);
  const line = (/** @type {string} */ name, /** @type {any} */ value) => value === undefined || value === null || value === '' || value.length === 0 ? null
    : h('div.param', null, h('small', null, name), h('pre', { tabIndex: 0 }, visible(Array.isArray(value) ? value.join('\n') : String(value))));
  const tools = (request.tools ?? []).map((/** @type {any} */ tool) => `${tool.name}: ${tool.description ?? ''}`);
  const node = h('section.ask.approval', { tabIndex: -1, data: { ask: request.id }, aria: { label: `Approval: ${oneLine(request.name)}` } },
    h('header', null, glyph('ask'), h('b', null, oneLine(request.name)), ` (${oneLine(request.kind)}) ${request.what === 'tools' ? 'offers tools to the model' : 'wants to be started'}`, h('small', null, ` named in ${oneLine(request.source)}`)),
    h('div.ask-body', null, line('Command', request.command && [request.command, ...(request.args ?? [])].join(' ')), line('In', request.cwd), line('Variables', request.variables), line('Address', request.url), line('Headers', request.headers),
      line('When', request.matcher), line('What the model reads', request.text), line('What it tells the model', request.instructions), line('Tools', tools), line('Mind', request.warnings)),
    h('div.buttons', null, button('Approve', 'primary', give(true)), button('Refuse', '', give(false))), status);
  return { node, setBusy: busySetter(node, status) };
}
