// Renders texts (a JSON list on stdin) with the published and the vendored parser. `node compare.mjs PUBLISHED VENDOR-DIRECTORY`
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , published, vendor] = process.argv;
const load = async (path) => new (await import(pathToFileURL(resolve(path)).href)).default({ maxNesting: 20 });
const theirs = await load(published);
const ours = await load(join(vendor, readdirSync(vendor).find((name) => name.endsWith('.mjs'))));
const texts = JSON.parse(readFileSync(0, 'utf8'));
for (const text of texts) assert.equal(ours.render(text), theirs.render(text));
console.log(`${texts.length} texts, the same`);
