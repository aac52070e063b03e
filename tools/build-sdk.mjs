// The SDK, called by build.mjs: modules for packages in dist/client with their types in dist/types, and the build for browsers
// in dist/sdk, which the server hands out.
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';

/** The most bytes of a browser build after gzip. */
const MAX_GZIP_BYTES = 12_000;

const common = { bundle: true, format: 'esm', platform: 'neutral', target: 'es2022', metafile: true, logLevel: 'warning' };

/**
 * Builds the SDK. Returns the paths of all files that it wrote, and a line about the size.
 *
 * @throws {Error} if the browser build is too large
 */
export async function buildSdk(outdir) {
  const folder = join(outdir, 'sdk');
  const [modules, browser] = await Promise.all([
    build({ ...common, entryPoints: ['./src/client/main.ts', './src/client/react.ts', './src/client/yjs.ts'], outdir: join(outdir, 'client'), external: ['react'] }),
    // Without what needs a secret key, which no page may have.
    build({ ...common, stdin: { contents: "export { CollabError, CollabSession, version } from './src/client/main.ts';", resolveDir: '.' }, outfile: join(folder, 'collab.js'), minify: true }),
    emitTypes(outdir),
  ]);
  const bytes = await readFile(join(folder, 'collab.js'));
  const gzipBytes = gzipSync(bytes, { level: 9 }).length;
  if (gzipBytes > MAX_GZIP_BYTES) throw new Error(`The SDK has ${gzipBytes} bytes after gzip; at most ${MAX_GZIP_BYTES} are allowed.`);

  const file = `collab-${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}.js`;
  await copyFile(join(folder, 'collab.js'), join(folder, file));
  const { version } = JSON.parse(await readFile('package.json', 'utf8'));
  const integrity = `sha384-${createHash('sha384').update(bytes).digest('base64')}`;
  await writeFile(join(folder, 'manifest.json'), `${JSON.stringify({ version, files: { 'collab.js': { path: `/sdk/${file}`, integrity, bytes: bytes.length, gzipBytes } } }, null, 2)}\n`);
  const outputs = [modules, browser].flatMap(({ metafile }) => Object.keys(metafile.outputs));
  const types = (await readdir(join(outdir, 'types'), { recursive: true })).map((path) => join(outdir, 'types', path));
  return { outputs: [...outputs, join(folder, file), join(folder, 'manifest.json'), ...types], size: `SDK for browsers: ${gzipBytes} bytes after gzip, at most ${MAX_GZIP_BYTES}` };
}

async function emitTypes(outdir) {
  await rm(join(outdir, 'types'), { recursive: true, force: true });
  const args = ['--project', 'src/client', '--noEmit', 'false', '--emitDeclarationOnly', '--outDir', join(outdir, 'types')];
  await promisify(execFile)(process.execPath, ['node_modules/typescript/bin/tsc', ...args]);
}
