import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync } from 'node:fs';
import t from 'tap';
import { COLLAB, initFolder, until, workersOf } from '../helpers/cluster.ts';

t.test('a log that cannot be written, such as on a full disk, does not end the server', async (t) => {
  const { dir, keys } = await initFolder();
  const full = openSync('/dev/full', 'w');
  const primary = spawn(process.execPath, [COLLAB, 'start', '--dir', dir, '--port', '0', '--workers', '2', '--json'], {
    stdio: ['ignore', 'pipe', full],
  });
  closeSync(full);
  t.teardown(() => {
    primary.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  const [output] = (await once(primary.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const { address } = JSON.parse(output.toString()) as { address: string };
  const status = async (): Promise<number> => {
    const response = await fetch(`${address}/api/v1/users`, {
      headers: { authorization: `Bearer ${keys.secretKey}` },
    }).catch(() => null);
    return response?.status ?? 0;
  };
  t.equal(await status(), 200);
  const web = (): number[] => workersOf(primary.pid ?? 0, 'web');
  for (let kill = 0; kill < 3; kill++) {
    const [killed = 0] = web();
    process.kill(killed, 'SIGKILL');
    await until(() => web().length === 2 && !web().includes(killed));
    await until(async () => (await status()) === 200);
  }
  t.pass('the primary, which logs each end, replaces its workers');
  primary.kill('SIGTERM');
  t.strictSame(await once(primary, 'exit'), [0, null]);
});
