// Dialogs: a question, a choice from a list, a text. Built anew each time, and gone when they are closed.

import { glyph, h } from './dom.js';

/** Show a dialog until it is closed; gives its `returnValue`. @param {string} title @param {any[]} children @param {string} [kind]
 * @returns {Promise<string>} */
export function show(title, children, kind = '') {
  const dialog = h(`dialog${kind ? `.${kind}` : ''}`, { aria: { label: title } }, h('header', null, h('h2', null, title),
    h('button.icon-button', { aria: { label: 'Close' }, onclick: () => dialog.close('') }, glyph('close'))), ...children);
  dialog.addEventListener('click', (/** @type {Event} */ event) => { if (event.target === dialog) dialog.close(''); });
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => { dialog.remove(); resolve(dialog.returnValue); });
  });
}

/** Close the dialog that an element is in. @param {Event} event @param {string} value */
export function closeWith(event, value) {
  if (event.target instanceof Element) event.target.closest('dialog')?.close(value);
}

/** What a dialog can be answered. @param {string} yes @param {boolean} [isHarmful] */
export const choices = (yes, isHarmful = false) => h('footer', null, h('button', { onclick: (/** @type {Event} */ event) => closeWith(event, '') }, 'Cancel'),
  h(`button.${isHarmful ? 'danger' : 'primary'}`, { onclick: (/** @type {Event} */ event) => closeWith(event, 'yes') }, yes));

/** @param {{title: string, text: string, detail?: string, yes: string, isHarmful?: boolean}} question */
export async function confirm({ title, text, detail = '', yes, isHarmful = false }) {
  const answer = await show(title, [
    h('p', null, text), detail && h('pre.detail', { tabIndex: 0 }, detail),
    choices(yes, isHarmful),
  ]);
  return answer === 'yes';
}

/** @param {{title: string, label: string, value?: string, yes: string}} question */
export async function ask({ title, label, value = '', yes }) {
  const field = h('input', { type: 'text', value, aria: { label }, maxLength: 1000 });
  const form = h('form', { method: 'dialog', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); closeWith(event, 'yes'); } },
    h('label.field', null, label, field), choices(yes));
  const shown = show(title, [form]);
  field.select();
  return (await shown) === 'yes' ? String(field.value) : null;
}

/** A list to choose from, filtered by what is typed. @template T
 * @param {{title: string, label: string, items: (typed: string) => T[]|Promise<T[]>, draw: (item: T) => any, choose: (item: T) => void, empty?: string}} options */
export function palette({ title, label, items, draw, choose, empty = 'Nothing fits.' }) {
  const list = h('ul.palette-list', { role: 'listbox', id: 'palette-list', aria: { label } });
  const field = h('input', { type: 'search', placeholder: label, autocomplete: 'off', spellcheck: false, role: 'combobox', aria: { label, controls: 'palette-list', expanded: true } });
  /** @type {T[]} */
  let found = [];
  let at = 0;
  let turn = 0;
  let isFound = Promise.resolve();
  const pick = (/** @type {number} */ index) => { const item = found[index]; if (item !== undefined) { list.closest('dialog')?.close(''); choose(item); } };
  const mark = () => {
    [...list.children].forEach((node, index) => node.setAttribute('aria-selected', String(index === at)));
    const node = list.children[at];
    if (node instanceof HTMLElement) { list.scrollTop = Math.min(Math.max(list.scrollTop, node.offsetTop + node.offsetHeight - list.clientHeight), node.offsetTop); field.setAttribute('aria-activedescendant', node.id); }
  };
  const refresh = () => { isFound = find(); };
  const find = async () => {
    const mine = ++turn;
    const now = await items(field.value);
    if (mine !== turn) return;
    found = now;
    at = 0;
    list.replaceChildren(...found.map((item, index) => h('li', { role: 'option', id: `palette-${index}`, onclick: () => pick(index) }, draw(item))));
    if (!found.length) list.append(h('li.empty', { role: 'option', aria: { disabled: true } }, empty));
    mark();
  };
  field.addEventListener('input', refresh);
  field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.isComposing) return;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      at = (at + (event.key === 'ArrowDown' ? 1 : found.length - 1)) % Math.max(1, found.length);
      mark();
    } else if (event.key === 'Enter') { event.preventDefault(); void isFound.then(() => pick(at)); } // for what was typed, not for what is still shown
  });
  const shown = show(title, [field, list], 'palette');
  field.focus();
  refresh();
  return shown;
}

/** A menu at a button. @param {Element} anchor @param {{label: string, choose: () => void, isHarmful?: boolean, isChecked?: boolean}[]} entries */
export function menu(anchor, entries) {
  document.querySelector('.menu')?.remove();
  const close = () => { node.remove(); document.removeEventListener('pointerdown', outside, true); };
  const leave = () => { close(); if (anchor instanceof HTMLElement) anchor.focus(); };
  const outside = (/** @type {Event} */ event) => { if (!(event.target instanceof Node && node.contains(event.target))) close(); };
  const node = h('div.menu', { role: 'menu' }, entries.map((entry) => h(`button${entry.isHarmful ? '.danger' : ''}`, {
    role: entry.isChecked === undefined ? 'menuitem' : 'menuitemradio', aria: { checked: entry.isChecked }, onclick: () => { leave(); entry.choose(); },
  }, entry.label)));
  node.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const buttons = [...node.querySelectorAll('button')];
    const at = buttons.indexOf(/** @type {any} */ (document.activeElement));
    if (event.key === 'Escape') { event.stopPropagation(); leave(); }
    else if (event.key === 'Tab') leave();
    else if (event.key === 'ArrowDown') { event.preventDefault(); buttons[(at + 1) % buttons.length]?.focus(); }
    else if (event.key === 'ArrowUp') { event.preventDefault(); buttons[(at + buttons.length - 1) % buttons.length]?.focus(); }
  });
  document.body.append(node);
  const at = anchor.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, innerWidth - node.offsetWidth - 8));
  const below = at.bottom + node.offsetHeight + 8 < innerHeight;
  node.style.left = `${left}px`;
  node.style.top = `${Math.max(8, below ? at.bottom + 4 : at.top - node.offsetHeight - 4)}px`;
  document.addEventListener('pointerdown', outside, true);
  node.querySelector('button')?.focus();
}
