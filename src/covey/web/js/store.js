// What this browser keeps: the token, drafts, how things look. By origin, and by the path below which the page lies.

const PREFIX = `covey:${new URL('../../../', import.meta.url).pathname}:`;

/** @param {string} name */
export function kept(name) {
  try { return localStorage.getItem(PREFIX + name) ?? ''; } catch { return ''; }
}

/** @param {string} name @param {string} value  '': nothing is kept */
export function keep(name, value) {
  try {
    if (value) localStorage.setItem(PREFIX + name, value); else localStorage.removeItem(PREFIX + name);
  } catch { /* a private window, or no room: then it lasts as long as the tab */ }
}

/** @param {string} name @returns {any} */
export function keptJson(name) {
  try { return JSON.parse(kept(name) || 'null'); } catch { return null; }
}

// ── attachments of drafts, which are too large for the above ──

/** @returns {Promise<IDBDatabase>} */
function database() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open('covey-drafts', 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore('files');
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

/** @param {string} key @param {any[]} files */
export async function keepFiles(key, files) {
  try {
    const table = (await database()).transaction('files', 'readwrite').objectStore('files');
    if (files.length) table.put(files, PREFIX + key); else table.delete(PREFIX + key);
  } catch { /* they last as long as the tab */ }
}

/** @param {string} key @returns {Promise<any[]>} */
export async function keptFiles(key) {
  try {
    const asked = (await database()).transaction('files').objectStore('files').get(PREFIX + key);
    return await new Promise((resolve) => { asked.onsuccess = () => resolve(asked.result ?? []); asked.onerror = () => resolve([]); });
  } catch { return []; }
}
