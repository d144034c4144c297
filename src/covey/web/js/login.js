// How the page gets in: a code from the fragment, or one that was pasted, for a token of its own.

import { Api, ApiError } from './api.js';
import { byId, fill, h, marked } from './dom.js';
import { keep, kept } from './store.js';

/** The code in the fragment. It is removed before anything else, so that it is neither seen nor kept in the history. */
export function codeFromFragment() {
  const found = /^#code=([\w-]{8,64})$/.exec(location.hash);
  if (!found) return '';
  history.replaceState(null, '', location.pathname + location.search);
  return found[1] ?? '';
}

/** What people call this browser. */
export function browserName() {
  const agent = navigator.userAgent;
  const browser = /Edg\//.test(agent) ? 'Edge' : /Firefox\//.test(agent) ? 'Firefox' : /Chrom(e|ium)\//.test(agent) ? 'Chrome' : /Safari\//.test(agent) ? 'Safari' : 'Browser';
  const system = /iPhone|iPad/.test(agent) ? 'iOS' : /Android/.test(agent) ? 'Android' : /Mac OS X/.test(agent) ? 'macOS' : /Windows/.test(agent) ? 'Windows' : 'Linux';
  return `${browser} on ${system}`;
}

/** @param {string} code @returns {Promise<{workspaceId: string}>} */
export async function redeem(code) {
  const access = await new Api('').redeem(code, browserName());
  keep('token', access.token);
  return { workspaceId: access.workspace_id ?? '' };
}

export const token = () => kept('token');

/** The one screen for "no token". It is shown once, whatever fails. @param {string} why */
export function showLogin(why = '') {
  keep('token', '');
  document.body.dataset.screen = 'login';
  const field = h('input', { type: 'text', name: 'code', autocomplete: 'off', spellcheck: false, placeholder: 'Code or link', aria: { label: 'Code or link' } });
  const status = h('p.login-why', { role: 'alert' });
  const say = (/** @type {string} */ text) => fill(status, marked(text.charAt(0).toUpperCase() + text.slice(1)));
  say(why);
  const enter = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const code = /([\w-]{16,64})\s*$/.exec(field.value)?.[1] ?? '';
    if (!code) { say('This is no code: paste what `covey web` printed.'); return; }
    try {
      const { workspaceId } = await redeem(code);
      if (workspaceId && !location.hash) location.hash = `#/w/${workspaceId}`;
      location.reload();
    } catch (error) { say(error instanceof ApiError ? error.message : String(error)); }
  };
  fill(byId('login'), h('div.login-card', null, h('h1', null, h('img', { src: new URL('../icon.svg', import.meta.url).href, alt: '', width: 40, height: 40 }), 'Covey'),
    status, h('p', null, 'To let this browser in, run this where the server is:'), h('pre', null, 'covey web'),
    h('p', null, 'It opens this page, or prints a link that works once. You can also paste the link or its code here:'),
    h('form', { onsubmit: enter }, field, h('button.primary', { type: 'submit' }, 'Enter'))));
  field.focus();
}
