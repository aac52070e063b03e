import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

/** Modules keep the URL of their source, from which they find files beside it and, as `dist/` exists, what is built. */
const sourceUrls: Plugin = {
  name: 'source-urls',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      if (!text.includes('import.meta.url')) return null;
      // Plugins import the public API that is built: nothing in a compiled test loads TypeScript.
      const file = path.endsWith('/src/plugins/loading/locate.ts') ? join(process.cwd(), 'dist/bin/collab.js') : path;
      return { contents: text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(file).href)), loader: 'ts' };
    });
  },
};

/**
 * `import t from 'tap'` stands for the test of the file (current-test.ts); only the host of the files has tap itself.
 */
const oneTestPerFile = (tap: string): Plugin => ({
  name: 'one-test-per-file',
  setup: ({ onResolve }) => {
    onResolve({ filter: /^tap$/ }, ({ importer }) =>
      importer.endsWith('/test/run/host.ts')
        ? { path: tap, external: true }
        : { path: join(process.cwd(), 'test/run/current-test.ts') },
    );
  },
});

/** Packages that are compiled into the tests: hundreds of modules, which took each process a second to load. */
const COMPILED = ['typebox', 'jose'];

/** The packages of this project that the tests import from `node_modules`. */
async function packages(): Promise<string[]> {
  const { dependencies, devDependencies, peerDependencies } = JSON.parse(
    await readFile('package.json', 'utf8'),
  ) as Record<string, Readonly<Record<string, string>>>;
  return Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies }).filter(
    (name) => !COMPILED.includes(name),
  );
}

/**
 * Compiles test files, the fixtures that run as processes, the host of test files and what they import, once for all
 * processes. Starting `tsx` and compiling in each process took two thirds of the time of a small test file.
 *
 * @param files paths from the project's top, which is the working folder
 * @param folder where the output goes, at the same paths with `.js`; inside the project, so that packages are found
 */
export async function bundleTests(files: readonly string[], folder: string): Promise<void> {
  // There tap leaves it out of stack traces, as it does with its own modules.
  const tap = join(folder, 'node_modules/@tapjs/tap.mjs');
  // tap is some two hundred modules, of which Node would read the source maps, too: 0.3 s for each process.
  const tapBuilt = build({
    entryPoints: ['tap'],
    outfile: tap,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    logLevel: 'warning',
  });
  const external = await packages();
  const testsBuilt = build({
    entryPoints: [...files, 'test/run/host.ts'],
    outbase: '.',
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external,
    sourcemap: true,
    sourcesContent: false,
    chunkNames: 'chunks/[hash]',
    logLevel: 'warning',
    plugins: [oneTestPerFile(tap), sourceUrls],
  });
  await Promise.all([tapBuilt, testsBuilt]);
}
