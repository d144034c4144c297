// The way from this tab to the hub: a SharedWorker, or, where there is none, a hub of its own.

import { Hub } from './hub.js';

/** @typedef {{postMessage: (message: any) => void, onmessage: ((event: {data: any}) => void)|null}} HubPort */

/** The only URL that ever becomes a script: a constant. */
function workerUrl() {
  const url = new URL('./worker.js', import.meta.url).href;
  const types = /** @type {any} */ (globalThis).trustedTypes;
  if (!types) return url;
  const policy = types.createPolicy('covey', {
    createScriptURL: (/** @type {string} */ asked) => {
      if (asked !== url) throw new TypeError('only the worker is a script');
      return asked;
    },
  });
  return policy.createScriptURL(url);
}

/** Whether all tabs share one stream. A tab of its own takes one of the six connections that a browser has for a host. */
export const isShared = () => typeof SharedWorker === 'function';

/** @returns {HubPort} */
export function connectHub() {
  if (isShared()) {
    try {
      const worker = new SharedWorker(workerUrl(), { type: 'module', name: 'covey' });
      worker.port.start();
      return /** @type {HubPort} */ (/** @type {unknown} */ (worker.port));
    } catch { /* an old browser, or a private window */ }
  }
  return ownHub();
}

/** The same hub in this tab, behind ports that look alike. @returns {HubPort} */
export function ownHub() {
  const { port1, port2 } = new MessageChannel();
  new Hub().connect(/** @type {any} */ (port2));
  return /** @type {HubPort} */ (/** @type {unknown} */ (port1));
}
