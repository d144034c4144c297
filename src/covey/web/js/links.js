// Links and images that a model wrote. A link is the one way by which data could leave, so its host is always seen.

import { h } from './dom.js';
import { oneLine } from './text.js';

const LONG = 200;

/** @param {string} address */
function parsed(address) {
  try {
    const url = new URL(address);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : undefined;
  } catch { return undefined; }
}

/** Why somebody should look twice; '' if there is nothing. @param {URL} url @param {string} text */
export function doubtAbout(url, text) {
  if (url.username || url.password) return 'It holds a name or a password.';
  if (url.href.length > LONG) return 'It is very long, and may carry text from this session.';
  if (/(^|\.)xn--/.test(url.hostname)) return 'Its name is written in letters that may look like others.';
  const named = /(?:https?:\/\/)?((?:[\w-]+\.)+[a-z]{2,})/i.exec(text)?.[1]?.toLowerCase();
  if (named && url.protocol !== 'mailto:' && named !== url.hostname && /^(https?:\/\/|www\.|[\w-]+(\.[\w-]+)+(\/|$))/i.test(text.trim())) {
    return `The text names ${named}, the link leads to ${url.hostname}.`;
  }
  return '';
}

/** An empty link, to be filled with its text; what leads nowhere we go is only text. @param {string} address */
export function linkTo(address) {
  const url = parsed(address);
  if (!url) return h('span.no-link', { title: oneLine(address) });
  const host = url.protocol === 'mailto:' ? 'mail' : url.hostname;
  return h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer', title: `${host}\n${url.href.slice(0, 300)}`, data: { host } });
}

/** An image is never fetched. @param {string} text @param {string} address */
export function chip(text, address) {
  const url = parsed(address);
  const host = url ? url.hostname || 'mail' : address.slice(0, 5) === 'data:' ? 'inline data' : '';
  return h('span.chip', { title: 'Images are not loaded from elsewhere' }, '🖼 ', oneLine(text), host && h('small', null, ` ${host}`));
}

/** Ask before a doubtful link is followed: one listener for the whole page.
 * @param {(question: {title: string, text: string, detail: string, yes: string}) => Promise<boolean>} confirm */
export function guardLinks(confirm) {
  const follow = async (/** @type {MouseEvent} */ event) => {
    const link = event.target instanceof Element ? event.target.closest('a[data-host]') : null;
    if (!(link instanceof HTMLAnchorElement)) return;
    const doubt = doubtAbout(new URL(link.href), link.textContent ?? '');
    if (!doubt) return;
    event.preventDefault();
    const isWanted = await confirm({ title: 'Open this link?', text: doubt, detail: link.href, yes: 'Open' });
    if (isWanted) globalThis.open(link.href, '_blank', 'noopener,noreferrer');
  };
  document.addEventListener('click', follow);
  document.addEventListener('auxclick', follow);
}
