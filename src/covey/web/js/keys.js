// Keys. None is taken while somebody composes a word, nor in a field, save those with Ctrl or Alt.

import { menuOf, openPalette, openSessions, showKeys } from './actions.js';

const STOP_MS = 600;

/** @param {import('./app.js').App} app */
export function bindKeys(app) {
  let escapedAt = 0;
  document.addEventListener('keydown', (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    const isField = event.target instanceof HTMLElement && (event.target.matches('input, textarea, select') || event.target.isContentEditable);
    const withCtrl = event.ctrlKey || event.metaKey;
    if (withCtrl && event.key === 'k') { event.preventDefault(); openSessions(app); return; }
    if (withCtrl && event.key === '/') { event.preventDefault(); openPalette(app); return; }
    if (event.altKey && event.key.toLowerCase() === 'n') { event.preventDefault(); app.newSession(); return; }
    if (event.altKey && event.key.toLowerCase() === 'a') { event.preventDefault(); app.asks.focus(); return; }
    if (event.altKey && event.key.toLowerCase() === 'r') { event.preventDefault(); app.review.toggle(); return; }
    if (event.key === 'Escape' && !document.querySelector('dialog[open], .menu')) {
      if (document.body.classList.contains('drawer-open')) { document.body.classList.remove('drawer-open'); return; }
      if (app.isBusy && event.timeStamp - escapedAt < STOP_MS) { app.stop(); escapedAt = 0; } else escapedAt = event.timeStamp;
      return;
    }
    if (isField || withCtrl || event.altKey || document.querySelector('dialog[open], .menu')) return;
    if (event.target instanceof Element && event.target.closest('.ask')) return; // its own keys
    if (event.key === '[') app.sessions.move(-1);
    else if (event.key === ']') app.sessions.move(1);
    else if (event.key === '?') showKeys();
    else if (event.key === '/') { event.preventDefault(); app.composer.focus(); }
    else if (event.key === 'm') menuOf(app);
  });
}
