// Parses texts (a JSON list on stdin) with the published and the vendored parser. `node compare.mjs PUBLISHED VENDOR-DIRECTORY`
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , published, vendor] = process.argv;
const load = async (path) => new (await import(pathToFileURL(resolve(path)).href)).default({ maxNesting: 20 });
const theirs = await load(published);
const ours = await load(join(vendor, readdirSync(vendor).find((name) => name.endsWith('.mjs'))));
// Theirs encodes addresses and judges them, by functions that one may replace; ours has been made without.
const asWritten = (address) => address;
Object.assign(theirs, { validateLink: () => true, normalizeLink: asWritten, normalizeLinkText: asWritten });

function tokens(md, text) {
  const env = {};
  const blocks = [];
  md.block.parse(text, md, env, blocks);
  for (const token of blocks) if (token.type === 'inline') md.inline.parse(token.content, md, env, token.children = []);
  return JSON.stringify({ blocks, env });
}

const texts = JSON.parse(readFileSync(0, 'utf8'));
for (const text of texts) assert.equal(tokens(ours, text), tokens(theirs, text));
console.log(`${texts.length} texts, the same`);
