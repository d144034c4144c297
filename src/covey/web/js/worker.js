// The SharedWorker: one hub for all tabs of this origin. The hub itself does not know where it runs.

import { Hub } from './hub.js';

const hub = new Hub();
// @ts-ignore - the type checker knows windows only
self.onconnect = (/** @type {MessageEvent} */ event) => hub.connect(/** @type {any} */ (event.ports[0]));
