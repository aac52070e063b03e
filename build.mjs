// Bundles the CLI and the primary into dist/bin/collab.js, the worker processes into dist/bin/worker.cjs, the demo page into dist/demo and the API reference into dist/docs. `npm start` and `npm test` run it first.
import { build } from 'esbuild';
import { chmod, readdir, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';

const outdir = 'dist';

const node = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  // What is not named here goes into the bundle: typebox alone is hundreds of modules, 200 ms of every worker's start.
  external: ['commander', 'file-type', 'lmdb', 'music-metadata', 'sharp', 'strtok3', 'uWebSockets.js', 'yjs'],
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
  ],
  outdir,
  chunkNames: 'chunks/[name]-[hash]',
  splitting: true,
  format: 'esm',
  external: [...node.external, 'pino'],
});

// One CommonJS file, which Node loads with a third less of processor time than some hundred ES modules.
const worker = build({
  ...node,
  entryPoints: ['./bin/worker.ts'],
  outfile: join(outdir, 'bin/worker.cjs'),
  format: 'cjs',
  define: { 'import.meta.url': 'moduleUrl' },
  banner: { js: "const moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
});

const demo = build({
  entryPoints: {
    demo: './src/demo/page/main.ts',
    style: './src/demo/page/style.css',
    index: './src/demo/page/index.html',
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
  minify: true,
  platform: 'browser',
  target: 'es2022',
  metafile: true,
  logLevel: 'warning',
});

// esbuild has said what is wrong by then.
const results = await Promise.all([server, worker, demo, docs]).catch(() => process.exit(1));
await chmod(join(outdir, 'bin/collab.js'), 0o755);
await removeAllBut(new Set(results.flatMap(({ metafile }) => Object.keys(metafile.outputs))));

/** Chunks carry a hash in their name: those of earlier builds would pile up. */
async function removeAllBut(outputs) {
  for (const entry of await readdir(outdir, { recursive: true, withFileTypes: true })) {
    const path = relative('.', join(entry.parentPath ?? entry.path, entry.name));
    if (entry.isFile() && !outputs.has(path)) await rm(path, { force: true });
  }
}
