// The SDK, called by build.mjs: modules for packages in dist/client with their types in dist/types, and the build for
// browsers in dist/sdk, which the server hands out.
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';

/** The builds for browsers: what each contains, and its most bytes after gzip. */
const browserBuilds = [
  // Without what needs a secret key, which no page may have.
  {
    name: 'collab',
    contents: "export { CollabError, CollabSession, version } from './src/client/main.ts';",
    maxGzipBytes: 12_000,
  },
  {
    name: 'shared-socket',
    contents: "export { SharedSocket } from './src/client/shared-socket.ts';",
    maxGzipBytes: 4_500,
  },
];

const common = {
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  metafile: true,
  logLevel: 'warning',
};

/**
 * Builds the SDK. Returns the paths of all files that it wrote, and a line about the size of each build for browsers.
 *
 * @throws {Error} if a build for browsers is too large
 */
export async function buildSdk(outdir) {
  const folder = join(outdir, 'sdk');
  const entryPoints = ['main', 'react', 'shared-socket', 'yjs'].map((name) => `./src/client/${name}.ts`);
  const [modules, , ...built] = await Promise.all([
    build({ ...common, entryPoints, outdir: join(outdir, 'client'), external: ['react'] }),
    emitTypes(outdir),
    ...browserBuilds.map((each) => buildForBrowsers(folder, each)),
  ]);
  const { version } = JSON.parse(await readFile('package.json', 'utf8'));
  const manifest = join(folder, 'manifest.json');
  await writeFile(
    manifest,
    `${JSON.stringify({ version, files: Object.fromEntries(built.map(({ name, file }) => [name, file])) }, null, 2)}\n`,
  );
  const types = (await readdir(join(outdir, 'types'), { recursive: true })).map((path) => join(outdir, 'types', path));
  return {
    outputs: [...Object.keys(modules.metafile.outputs), ...built.flatMap(({ outputs }) => outputs), manifest, ...types],
    sizes: built.map(({ size }) => size),
  };
}

/** Builds one file under its plain name and under one with a hash. */
async function buildForBrowsers(folder, { name, contents, maxGzipBytes }) {
  const plain = join(folder, `${name}.js`);
  const { metafile } = await build({ ...common, stdin: { contents, resolveDir: '.' }, outfile: plain, minify: true });
  const bytes = await readFile(plain);
  const gzipBytes = gzipSync(bytes, { level: 9 }).length;
  if (gzipBytes > maxGzipBytes)
    throw new Error(`${plain} has ${gzipBytes} bytes after gzip; at most ${maxGzipBytes} are allowed.`);

  const file = `${name}-${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}.js`;
  await copyFile(plain, join(folder, file));
  const integrity = `sha384-${createHash('sha384').update(bytes).digest('base64')}`;
  return {
    name: `${name}.js`,
    file: { path: `/sdk/${file}`, integrity, bytes: bytes.length, gzipBytes },
    outputs: [...Object.keys(metafile.outputs), join(folder, file)],
    size: `${plain}: ${gzipBytes} bytes after gzip, at most ${maxGzipBytes}`,
  };
}

async function emitTypes(outdir) {
  await rm(join(outdir, 'types'), { recursive: true, force: true });
  const args = [
    '--project',
    'src/client',
    '--noEmit',
    'false',
    '--emitDeclarationOnly',
    '--outDir',
    join(outdir, 'types'),
  ];
  await promisify(execFile)(process.execPath, ['node_modules/typescript/bin/tsc', ...args]);
}
