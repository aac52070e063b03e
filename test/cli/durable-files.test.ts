import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { collabCommand } from '../helpers/cli.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { callsBeforeOutput, unflushed, withoutStrace } from '../helpers/unflushed.ts';

const skip = withoutStrace();

/** The parts of `created` (a path that the command creates) that are not flushed when the command reports success. */
async function leftBy(
  t: Test,
  created: string,
  args: readonly string[],
  end?: Parameters<typeof callsBeforeOutput>[2],
): Promise<string[]> {
  const log = join(tempFolder(t), 'calls');
  const calls = await callsBeforeOutput(log, [...collabCommand, ...args, '--json'], end);
  const { bytes, names } = unflushed(calls, created);
  t.ok(
    calls.some(({ name, descriptors }) => name === 'fsync' && descriptors[0] === dirname(created)),
    'its own name is flushed',
  );
  // Files that a start recreates or does not need.
  const needless = /\/(?:shared|opening|\.setup-\d+)(?:\/|$)|\/(?:lock\.mdb|collab\.lock|server\.json|reserve)$/;
  return [...bytes, ...names].filter((path) => !needless.test(path)).map((path) => path.slice(created.length));
}

t.test('everything that init creates is on the disk when it shows the keys', { skip }, async (t) => {
  const dir = join(tempFolder(t), 'new', 'live');
  t.strictSame(await leftBy(t, dir, ['init', '--dir', dir]), []);
});

t.test('everything that the first start creates is on the disk', { skip }, async (t) => {
  const dir = join(tempFolder(t), 'live');
  const pidOf = (output: string): number => (JSON.parse(output) as { pid: number }).pid;
  t.strictSame(
    await leftBy(t, dir, ['start', '--dir', dir, '--port', '0', '--workers', '1'], { signal: 'SIGTERM', pidOf }),
    [],
  );
});

t.test('an export, its import, and a backup are on the disk', { skip }, async (t) => {
  const folder = tempFolder(t);
  const [dir, file, backup] = [join(folder, 'live'), join(folder, 'all.ndjson'), join(folder, 'backups', 'today')];
  await newFolder(dir);
  t.strictSame(await leftBy(t, file, ['export', file, '--dir', dir]), []);
  t.strictSame(await leftBy(t, join(folder, 'imported'), ['import', file, '--dir', join(folder, 'imported')]), []);
  t.strictSame(await leftBy(t, backup, ['backup', backup, '--dir', dir]), []);
});
