// Bundles the CLI and the primary into dist/bin/collab.js, the worker processes into dist/bin/worker-code.cjs, the demo
// page into dist/demo and the API reference into dist/docs. `npm start` and `npm test` run it first.
import { build, transform } from 'esbuild';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { buildSdk } from './tools/build-sdk.mjs';
import { commitOf } from './tools/commit-of.mjs';

const { dependencies, version } = JSON.parse(await readFile('package.json', 'utf8'));
const commit = commitOf('.', version);
const outdir = 'dist';
const typesDir = 'dist/plugin/types';

const node = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  // What is not named here goes into the bundle: typebox alone is hundreds of modules, 200 ms of every worker's start.
  // Imported as `* as Type`, with `typebox/schema` in place of `typebox/compile`, a seventh of it is left out of the
  // bundle.
  external: [
    '@opentelemetry/*',
    '@redis/client',
    'commander',
    'file-type',
    'lmdb',
    'pg',
    'sharp',
    'uWebSockets.js',
    'ws',
    'yjs',
  ],
  sourcemap: true,
  metafile: true,
  logLevel: 'warning',
};

const server = build({
  ...node,
  entryPoints: [
    { in: './bin/collab.ts', out: 'bin/collab' },
    // A worker thread starts from a file of its own.
    { in: './src/adapters/yjs/thread.ts', out: 'threads/yjs' },
    { in: './src/plugins/thread/entry.ts', out: 'threads/plugin' },
    { in: './src/plugins/thread/check-entry.ts', out: 'threads/check' },
  ],
  outdir,
  chunkNames: 'chunks/[name]-[hash]',
  splitting: true,
  format: 'esm',
  external: [...node.external, 'pino'],
  define: commit === null ? {} : { COLLAB_COMMIT: JSON.stringify(commit) },
});

// What plugins import as `collab/plugin`, and the plugins that ship. Those find packages beside the program, but
// typebox is bundled: it is hundreds of modules.
const shipped = (await readdir('plugins')).filter((name) => existsSync(`plugins/${name}/index.ts`));
const plugins = build({
  ...node,
  entryPoints: [
    { in: './src/plugins/api.ts', out: 'plugin/index' },
    ...shipped.map((name) => ({ in: `./plugins/${name}/index.ts`, out: `plugins/${name}` })),
  ],
  outdir,
  format: 'esm',
  external: Object.keys(dependencies).filter((name) => name !== 'typebox'),
});

/** Leaves `import()` to a module of its own, because it does not work in code that runs from a code cache. */
const importModuleApart = {
  name: 'import-module',
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/import-module\.ts$/ }, ({ kind }) =>
      kind === 'entry-point' ? null : { path: './import-module.cjs', external: true },
    ),
};

// One CommonJS file, which Node loads with a third less of processor time than some hundred ES modules, and a small one
// that runs it with its code cache.
const commonJs = {
  ...node,
  outdir,
  outExtension: { '.js': '.cjs' },
  format: 'cjs',
  define: { 'import.meta.url': 'fileUrlOfBundle' },
  charset: 'ascii',
  // Each process keeps the text of its code: without blanks and comments it takes 0.5 MB less. Names stay, for the log.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 200,
  plugins: [importModuleApart],
};
// Before the directive that esbuild adds, which has no effect after other code.
const header = "'use strict';const fileUrlOfBundle = require('node:url').pathToFileURL(__filename).href;";
// In the wrapper of CommonJS modules, as src/lib/process/code-cache.ts needs it.
const workerCode = build({
  ...commonJs,
  entryPoints: [{ in: './bin/worker.ts', out: 'bin/worker-code' }],
  banner: { js: `(function (exports, require, module, __filename, __dirname) {${header}` },
  footer: { js: '})' },
});
const worker = build({
  ...commonJs,
  entryPoints: [
    { in: './bin/cached-worker.ts', out: 'bin/worker' },
    { in: './src/lib/process/import-module.ts', out: 'bin/import-module' },
  ],
  banner: { js: header },
});

const demo = build({
  entryPoints: {
    demo: './src/demo/page/main.ts',
    style: './src/demo/page/style.css',
    index: './src/demo/page/index.html',
    product: './src/demo/page/product.ts',
    'product-style': './src/demo/page/product.css',
    'product-page': './src/demo/page/product.html',
    icon: './src/demo/page/icon.svg',
  },
  outdir: join(outdir, 'demo'),
  loader: { '.html': 'copy', '.svg': 'copy' },
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  metafile: true,
  logLevel: 'warning',
});

/** Style sheets of the widget become minified text in its script. */
const cssText = {
  name: 'css-text',
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true, target: 'es2022' });
      return { contents: code.trim(), loader: 'text' };
    });
  },
};

/** Line breaks and indents of the widget's templates show nothing: one space says the same. */
const shortTemplates = {
  name: 'short-templates',
  setup({ onLoad }) {
    onLoad({ filter: /src\/widget\/.*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      return {
        contents: text.includes("from 'lit'") ? text.replaceAll(/(?<=[>}"])\n\s+(?=[<$@.])/g, ' ') : text,
        loader: 'ts',
      };
    });
  },
};

const widget = build({
  entryPoints: { widget: './src/widget/collab-comments.ts' },
  outdir: join(outdir, 'widget'),
  // The licenses of the libraries are in a file of their own beside each script.
  legalComments: 'external',
  chunkNames: 'widget/[name]-[hash]',
  splitting: true,
  loader: { '.txt': 'text' },
  plugins: [cssText, shortTemplates],
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  metafile: true,
  logLevel: 'warning',
});

const viewer = './node_modules/swagger-ui-dist';
// The viewer is copied as it is, so that whoever installs the product need not install it too.
const docs = build({
  entryPoints: [
    { in: './src/http/pages/docs-page/page.ts', out: 'page' },
    { in: './src/http/pages/docs-page/page.css', out: 'page' },
    { in: './src/http/pages/docs-page/index.html', out: 'index' },
    { in: './src/demo/page/icon.svg', out: 'icon' },
    { in: `${viewer}/swagger-ui-bundle.js`, out: 'swagger-ui-bundle' },
    { in: `${viewer}/swagger-ui.css`, out: 'swagger-ui' },
    { in: `${viewer}/LICENSE`, out: 'swagger-ui.LICENSE' },
    { in: `${viewer}/NOTICE`, out: 'swagger-ui.NOTICE' },
  ],
  outdir: join(outdir, 'docs'),
  loader: { '.html': 'copy', '.svg': 'copy', '.css': 'copy', '.js': 'copy', '': 'copy' },
  bundle: true,
  format: 'iife',
  minify: true,
  platform: 'browser',
  target: 'es2022',
  metafile: true,
  logLevel: 'warning',
});

// esbuild has said what is wrong by then.
const results = await Promise.all([server, workerCode, worker, demo, widget, docs, plugins]).catch(() =>
  process.exit(1),
);
if (/[^\w.$'"`]import\(/.test(await readFile(join(outdir, 'bin/worker-code.cjs'), 'utf8'))) {
  console.error(
    'workers run import(), which does not work in a code cache: use importModule (src/lib/process/import-module.ts)',
  );
  process.exit(1);
}
const sdk = await buildSdk(outdir);
if (process.env.npm_config_loglevel !== 'silent') for (const size of sdk.sizes) console.log(size);
await chmod(join(outdir, 'bin/collab.js'), 0o755);
// Those that src/plugins/loading/locate.ts loads by default.
const manifests = await Promise.all(['webhook'].map(writeManifest));
emitTypes();
await removeAllBut(
  new Set([...manifests, ...results.flatMap(({ metafile }) => Object.keys(metafile.outputs)), ...sdk.outputs]),
);
const { outputs: widgetOutputs } = (await widget).metafile;
// Browsers load the first part before there are pins, the finding of elements and the views that open right after, the
// rest by need.
const firstPart = 'src/widget/collab-comments.ts';
const widgetBounds = {
  [firstPart]: 40_000,
  'src/widget/anchoring/tracker.ts': 14_000,
  'src/widget/anchoring/top-layer.ts': 2_000,
  'src/widget/views/opened.ts': 36_000,
  'src/widget/views/inbox/inbox.ts': 7_000,
  'src/widget/views/moderation/queue.ts': 6_000,
  'src/widget/views/moderation/report.ts': 1_500,
  'src/widget/emoji/all.ts': 40_000,
  'src/widget/emoji/all-emojis.ts': 43_000,
};
const LANGUAGE_BOUND = 6_000;
for (const part of Object.values(widgetOutputs).flatMap(({ entryPoint }) => entryPoint ?? [])) {
  await checkSize(widgetOutputs, part, part.startsWith('src/widget/strings/') ? LANGUAGE_BOUND : widgetBounds[part]);
}

/**
 * Prints the size of a part of the widget with what it imports, as it is sent, and ends the build if it exceeds the
 * bound, in bytes, or has none. What the first part has is not counted again.
 */
async function checkSize(outputs, part, bound) {
  const filesOf = (entryPoint) => {
    const files = new Set(Object.keys(outputs).filter((file) => outputs[file].entryPoint === entryPoint));
    for (const file of files)
      for (const { path, kind } of outputs[file].imports) if (kind === 'import-statement') files.add(path);
    return files;
  };
  const loaded = part === firstPart ? new Set() : filesOf(firstPart);
  const files = [...filesOf(part)].filter((file) => !loaded.has(file));
  const sizes = await Promise.all(files.map(async (file) => gzipSync(await readFile(file), { level: 9 }).length));
  const size = sizes.reduce((sum, each) => sum + each, 0);
  // `npm start` builds silently.
  if (process.env.npm_config_loglevel !== 'silent')
    console.log(`${part}: ${(size / 1000).toFixed(1)} kB gzip, at most ${bound / 1000} kB`);
  if (size <= bound) return;
  console.error(
    bound === undefined ? `say in build.mjs how large ${part} may be` : `${part} is larger than ${bound / 1000} kB`,
  );
  process.exit(1);
}

/**
 * Writes what a shipped plugin registers without a configuration (`src/plugins/loading/manifest.ts`). Returns the path.
 */
async function writeManifest(name) {
  const thread = new Worker(`./${outdir}/threads/plugin.js`, { workerData: { entry: { use: name }, publicUrl: '' } });
  const message = await new Promise((resolve, reject) => thread.on('message', resolve).on('error', reject));
  await thread.terminate();
  if (message.type !== 'ready') throw new Error(`the plugin ${name} cannot be loaded: ${message.message}`);
  const { settings, ...info } = message.info;
  const path = join(outdir, `plugins/${name}.json`);
  await writeFile(path, `${JSON.stringify({ ...info, config: settings.base.config })}\n`);
  return path;
}

/** The declarations of what plugins import. They are not outputs of esbuild, so they are written anew by each build. */
function emitTypes() {
  const options = [
    '--declaration',
    '--emitDeclarationOnly',
    '--noEmit',
    'false',
    '--rootDir',
    'src',
    '--outDir',
    typesDir,
  ];
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '--project', 'tsconfig.plugin.json', ...options], {
    stdio: 'inherit',
  });
}

/** Chunks carry a hash in their name: those of earlier builds would pile up. */
async function removeAllBut(outputs) {
  for (const entry of await readdir(outdir, { recursive: true, withFileTypes: true })) {
    const path = relative('.', join(entry.parentPath ?? entry.path, entry.name));
    if (entry.isFile() && !outputs.has(path) && !path.startsWith(typesDir)) await rm(path, { force: true });
  }
}
