// Stands for the package `punycode.js` in the vendored markdown-it: an address becomes a `URL` before it is a link, which
// writes foreign letters of a name as the net does; and a name that is written so is shown so.
const same = (/** @type {string} */ name) => name;
export default { toASCII: same, toUnicode: same };
