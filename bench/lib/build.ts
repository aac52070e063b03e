import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const bench = fileURLToPath(new URL('..', import.meta.url));
const entries = {
  'bare-uws': 'peers/bare-uws.ts',
  'bare-files': 'peers/bare-files.ts',
  'bare-sharp': 'peers/bare-sharp.ts',
  fastify: 'peers/fastify.ts',
  sink: 'loads/sink.ts',
};

/** Compiles the code that runs in separate processes, so that none of them needs a loader. */
export async function buildAll(): Promise<void> {
  const entryPoints = Object.entries(entries).map(([out, file]) => ({ out, in: `${bench}${file}` }));
  await build({
    entryPoints,
    outdir: `${bench}.build`,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  });
}

/** The compiled file of an entry point. */
export function built(entry: keyof typeof entries): string {
  return `${bench}.build/${entry}.mjs`;
}
