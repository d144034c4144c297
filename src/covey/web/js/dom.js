// Nodes are built, never parsed: a tag from a fixed list, properties by name, children as nodes or as text.

const TAGS = new Set(('a article aside b blockquote br button code datalist del details dialog div em fieldset footer form h1 h2 h3 h4 '
  + 'h5 h6 header hr img input kbd label legend li main nav ol option p pre progress s section select small span strong summary '
  + 'sub sup table tbody td textarea th thead time tr ul').split(' '));

/** @typedef {Node|string|number|null|undefined|false} Child */

/** An element. `on…` are listeners, `data` and `aria` are tables, everything else is a property or an attribute.
 * @param {string} tag  `name.class.class`
 * @param {Record<string, any>|null} [given]
 * @param {...(Child|Child[])} children
 * @returns {any} */
export function h(tag, given, ...children) {
  const [name = 'div', ...classes] = tag.split('.');
  if (!TAGS.has(name)) throw new TypeError(`no element of ours: ${name}`);
  const node = /** @type {any} */ (document.createElement(name));
  if (name === 'button') node.type = 'button'; // it sends a form only where it says so
  if (classes.length) node.className = classes.join(' ');
  for (const [key, value] of Object.entries(given ?? {})) set(node, key, value);
  append(node, children);
  return node;
}

/** @param {any} node @param {string} key @param {any} value */
function set(node, key, value) {
  if (value === undefined || value === null) return;
  if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
  else if (key === 'data') Object.assign(node.dataset, value);
  else if (key === 'aria') for (const [name, text] of Object.entries(value)) { if (text !== undefined) node.setAttribute(`aria-${name}`, String(text)); }
  else if (key === 'role' || key === 'for' || key === 'list' || key === 'scope' || key === 'capture') node.setAttribute(key, value);
  else node[key] = value;
}

/** @param {Node} node @param {(Child|Child[])[]} children */
export function append(node, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** @param {Element} node @param {...(Child|Child[])} children */
export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** A button with an icon and a name. @param {string} icon @param {string} label @param {(event: Event) => void} onclick
 * @param {Record<string, any>} [more] */
export function iconButton(icon, label, onclick, more = {}) {
  const { class: extra, ...rest } = more;
  return h(`button.icon-button${extra ? `.${extra}` : ''}`, { title: label, aria: { label }, onclick, ...rest }, glyph(icon));
}

/** A sign that is only seen: drawn by icons.css, by its name. @param {string} icon */
export const glyph = (icon) => h('span.glyph', { data: { icon } });

/** Words with `code` in them, as the server writes them. @param {string} text */
export const marked = (text) => text.split(/`([^`\n]+)`/).map((piece, index) => (index % 2 ? h('code', null, piece) : piece));

// ── the frame loop: whatever became dirty is drawn once, at the next frame ──

/** @type {Map<string, () => void>} */
const dirty = new Map();
let isScheduled = false;
/** @type {(() => void)[]} */
const afterwards = [];

/** Draw this at the next frame, once, however often it is asked for. @param {string} key @param {() => void} draw */
export function later(key, draw) {
  dirty.set(key, draw);
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(flush);
}

/** Something to do after each drawn frame. @param {() => void} what */
export const afterEachFrame = (what) => { afterwards.push(what); };

export const frames = { drawn: 0 };

function flush() {
  isScheduled = false;
  const draws = [...dirty.values()];
  dirty.clear();
  for (const draw of draws) draw();
  for (const each of afterwards) each();
  frames.drawn++;
}
