// Feeds every recorded vector to the fold of the page, and says where it disagrees. `node vectors.mjs JS-DIRECTORY VECTORS`
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , modules, vectors] = process.argv;
const load = (name) => import(pathToFileURL(resolve(modules, name)).href);
const { View } = await load('fold.js');
const { viewAsJson } = await import('./fold_json.js');

let failures = 0;
const names = readdirSync(vectors).filter((name) => name.endsWith('.json'));
for (const name of names) {
  const vector = JSON.parse(readFileSync(join(vectors, name), 'utf8'));
  const view = new View();
  const commands = [];
  vector.inputs.forEach((input, index) => {
    for (const command of view.apply(structuredClone(input)).commands) commands.push([index, command]);
  });
  try {
    assert.deepEqual(JSON.parse(JSON.stringify(commands)), vector.commands);
    assert.deepEqual(JSON.parse(JSON.stringify(viewAsJson(view))), vector.expected);
  } catch (error) {
    failures++;
    console.log(`${name}: ${error.message}`);
  }
}
console.log(`${names.length} vectors, ${failures} disagree`);
process.exit(failures || !names.length ? 1 : 0);
