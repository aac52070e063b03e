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
const oneTestPerFile: Plugin = {
  name: 'one-test-per-file',
  setup: ({ onResolve }) => {
    onResolve({ filter: /^tap$/ }, ({ importer }) =>
      importer.endsWith('/test/run/host.ts')
        ? { path: 'tap', external: true }
        : { path: join(process.cwd(), 'test/run/current-test.ts') },
    );
  },
};

/**
 * Compiles test files, the fixtures that run as processes, the host of test files and what they import, once for all
 * processes. Starting `tsx` and compiling in each process took two thirds of the time of a small test file.
 *
 * @param files paths from the project's top, which is the working folder
 * @param folder where the output goes, at the same paths with `.js`; inside the project, so that packages are found
 */
export async function bundleTests(files: readonly string[], folder: string): Promise<void> {
  await build({
    entryPoints: [...files, 'test/run/host.ts'],
    outbase: '.',
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    sourcemap: true,
    sourcesContent: false,
    chunkNames: 'chunks/[hash]',
    logLevel: 'warning',
    plugins: [oneTestPerFile, sourceUrls],
  });
}
