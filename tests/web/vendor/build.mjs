// Makes the vendored markdown-it from its published package: bundled and minified, without the table of HTML 5 entities,
// linkify-it and punycode.js. `node build.mjs TOOLS OUT`: TOOLS has the packages of prepare.sh, OUT gets the module and the licences.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [, , tools, out] = process.argv;
const require = createRequire(join(resolve(tools), 'package.json'));
const here = import.meta.dirname;
const packages = join(resolve(tools), 'node_modules');
const { version } = JSON.parse(readFileSync(join(packages, 'markdown-it/package.json'), 'utf8'));
const parts = [['markdown-it', 'LICENSE'], ['mdurl', 'LICENSE'], ['uc.micro', 'LICENSE.txt']];

await require('esbuild').build({
  entryPoints: [join(packages, 'markdown-it/dist/markdown-it.mjs')],
  outfile: join(out, `markdown-it-${version}.mjs`),
  bundle: true, minify: true, format: 'esm', target: 'es2022', charset: 'utf8', legalComments: 'none', logLevel: 'warning',
  alias: { entities: join(here, 'entities.mjs'), 'linkify-it': join(here, 'linkify.mjs'), 'punycode.js': join(here, 'punycode.mjs') },
  banner: { js: `/*! markdown-it ${version} (MIT) https://github.com/markdown-it/markdown-it
Made by tests/web/vendor/build.mjs from the package on npm. Left out: linkify-it, punycode.js, and the names of entities that HTML 4 does not have. */` },
});
const licences = parts.map(([name, file]) => `${name}\n\n${readFileSync(join(packages, name, file), 'utf8').trim()}\n`);
writeFileSync(join(out, 'markdown-it.LICENSE'), licences.join('\n---\n\n'));
