import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { startCluster } from '../helpers/cluster.ts';

const script = fileURLToPath(new URL('../fixtures/sdk-runtime.mjs', import.meta.url));
const sdk = new URL('../../dist/client/main.js', import.meta.url).href;

/**
 * The runtimes of docs/sdk.md. Those besides Node are tested where they are installed; BUN and DENO name their
 * programs.
 */
const runtimes: readonly { readonly name: string; readonly program: string; readonly args: readonly string[] }[] = [
  { name: 'Node', program: process.execPath, args: [] },
  { name: 'Bun', program: process.env['BUN'] ?? 'bun', args: [] },
  { name: 'Deno', program: process.env['DENO'] ?? 'deno', args: ['run', '--allow-all', '--no-lock'] },
];

for (const { name, program, args } of runtimes) {
  const skip = spawnSync(program, ['--version']).status === 0 ? false : `${program} is not installed`;
  t.test(`the SDK works in ${name}, as a backend and as a user`, { skip }, async (t) => {
    const { url, keys, stop } = await startCluster({ workers: 1 });
    t.teardown(stop);
    const child = spawn(program, [...args, script, sdk, url, keys.secretKey, keys.publishableKey], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text));
    const [code] = (await once(child, 'close')) as [number];
    t.equal(code, 0, output.stderr);
    t.strictSame(JSON.parse(output.stdout), {
      bodies: ['größer ❤️'],
      refusal: 'thread_not_found',
      live: ['größer ❤️', 'from the session', 'from the backend'],
      written: 'from the session',
      attachment: 'image',
      webhook: 'invalid_signature',
    });
  });
}
