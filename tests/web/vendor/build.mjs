// Makes the vendored markdown-it from its published package: two of its parsers, bundled and minified, with parser.mjs around them.
// `node build.mjs TOOLS OUT`: TOOLS has the packages of prepare.sh, OUT gets the module and the licence.
import { copyFileSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, posix, resolve } from 'node:path';

const [, , tools, out] = process.argv;
const require = createRequire(join(resolve(tools), 'package.json'));
const here = import.meta.dirname;
const published = join(resolve(tools), 'node_modules/markdown-it');
const { version } = JSON.parse(readFileSync(join(published, 'package.json'), 'utf8'));

// The package is one file, from which nothing can be left out; the map beside it has its modules as they were written.
const map = JSON.parse(readFileSync(join(published, 'dist/markdown-it.mjs.map'), 'utf8'));
const modules = new Map(map.sources.map((name, i) => [name.replace('../src/', 'markdown-it/'), map.sourcesContent[i]]));
const NEVER_ON = ['rules_block/html_block.ts', 'rules_inline/html_inline.ts', 'rules_inline/linkify.ts'].map((name) => `markdown-it/${name}`);

const sources = {
  name: 'sources',
  setup(build) {
    build.onResolve({ filter: /\.ts$/ }, ({ path, importer }) => {
      const name = path.startsWith('.') ? posix.join(posix.dirname(importer), path) : path;
      return NEVER_ON.includes(name) ? { path: join(here, 'no_rule.mjs') } : { path: name, namespace: 'published' };
    });
    build.onResolve({ filter: /^mdurl$/ }, () => ({ external: true, sideEffects: false })); // used only by what is left out
    build.onLoad({ filter: /./, namespace: 'published' }, ({ path }) => ({ contents: modules.get(path), loader: 'ts' }));
  },
};

await require('esbuild').build({
  entryPoints: [join(here, 'parser.mjs')],
  outfile: join(out, `markdown-it-${version}.mjs`),
  bundle: true, minify: true, format: 'esm', target: 'es2022', charset: 'utf8', legalComments: 'none', logLevel: 'warning',
  plugins: [sources],
  alias: { entities: join(here, 'entities.mjs'), 'uc.micro': join(here, 'characters.mjs') },
  banner: { js: `/*! markdown-it ${version} (MIT) https://github.com/markdown-it/markdown-it
Its parsers of blocks and of text in them, made by tests/web/vendor/build.mjs from the package on npm. */` },
});
copyFileSync(join(published, 'LICENSE'), join(out, 'markdown-it.LICENSE'));
