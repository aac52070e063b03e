import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openDatabase } from '../../src/adapters/lmdb/env/database.ts';
import { collab, type InitOutput, type Server, startCollab, startServer, withoutProgress } from '../helpers/cli.ts';
import { until } from '../helpers/cluster.ts';
import { startFixture } from '../helpers/line-process.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { uploadSound } from '../helpers/upload.ts';
import { userToken } from '../helpers/user-token.ts';

/** Long enough that a backup is still copying the file when it gets the signal. No space is used on the disk. */
const LARGE_FILE_BYTES = 2 ** 31;

/** The processes registered as readers of the log or the base table, with or without a snapshot. */
async function readersOf(store: string): Promise<number[]> {
  const { log, root } = await openDatabase(store);
  try {
    return [...log.readerList().matchAll(/^ *(\d+) /gm), ...root.readerList().matchAll(/^ *(\d+) /gm)].map(([, pid]) =>
      Number(pid),
    );
  } finally {
    await Promise.all([log.close(), root.close()]);
  }
}

const folder = tempFolder(t);
const dir = join(folder, 'live');
let keys: InitOutput;
let server: Server;

t.before(async () => {
  keys = await newFolder(dir);
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ storage: { minFreeMb: 0 } }));
  server = await startServer(t, dir, ['--workers', '1']);
});

t.test('an interrupted export leaves no reader and no file behind', async (t) => {
  const store = join(dir, 'data', 'store');
  const headers = { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/octet-stream' };
  for (const room of ['a', 'b', 'c']) {
    const answer = await fetch(`${server.url}/api/v1/rooms/${room}/p2p/state`, {
      method: 'PUT',
      headers,
      body: Buffer.alloc(1_000_000),
    });
    t.ok(answer.ok, await answer.text());
  }
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    // The pipe is not read any more, so the export waits before it has read most of the store.
    const running = startCollab(t, ['export', '-', '--dir', dir]);
    const { pid = 0, stdout } = running.process;
    stdout?.pause();
    await until(() => (stdout?.readableLength ?? 0) > 0);
    t.ok((await readersOf(store)).includes(pid));
    t.equal(await running.end(signal), code);
    t.notOk((await readersOf(store)).includes(pid));
    t.equal(withoutProgress(running.errors()), '', 'it says nothing: who interrupted it knows');
  }

  const killed = startCollab(t, ['tail', '--env', 'default', '--dir', dir]);
  await until(() => killed.errors().includes('Following'));
  const { pid = 0 } = killed.process;
  t.ok((await readersOf(store)).includes(pid));
  killed.process.kill('SIGKILL');
  await once(killed.process, 'exit');
  await until(async () => !(await readersOf(store)).includes(pid));
  t.pass('the server frees the readers of one that was killed');
  t.same(
    readdirSync(dir).filter((name) => name.includes('partial')),
    [],
  );
});

t.test(
  'an interrupted backup leaves no files and no retention lease behind, so that the next one can use its folder',
  async (t) => {
    const parent = join(folder, 'backups');
    const to = join(parent, 'today');
    const token = await userToken(keys, 'ann');
    const { id } = await uploadSound(server, keys, token);
    const name = join('files', keys.environment.id, id.slice(0, 10), id);
    const file = join(dir, 'data', name);
    const content = readFileSync(file);
    truncateSync(file, LARGE_FILE_BYTES);
    const leases = (): string[] => readdirSync(join(dir, 'data', 'files', '.holds'));
    for (const [signal, code, written] of [
      ['SIGINT', 130, 'store'],
      ['SIGTERM', 143, name],
    ] as const) {
      const running = startCollab(t, ['backup', to, '--dir', dir]);
      await until(() => existsSync(join(to, written)));
      t.equal(leases().length, 1);
      t.equal(await running.end(signal), code);
      t.same(
        running
          .errors()
          .split('\n')
          .filter((line) => !/^(?:copying|checking) /.test(line)),
        [''],
        'it says nothing but its progress on a slow machine',
      );
      t.notOk(existsSync(parent), 'not even the folders that it has created are left');
      t.same(leases(), []);
    }
    writeFileSync(file, content);
    t.match(await collab(['backup', to, '--dir', dir]), { code: 0 });
  },
);

t.test('a second signal ends a command at once, also one that is writing', async (t) => {
  for (let i = 0; i < 5; i++) {
    const { child, lines } = startFixture('interrupted-writer', tempFolder(t));
    t.teardown(() => child.kill('SIGKILL'));
    await until(() => lines.includes('writes'));
    child.kill('SIGINT');
    await until(() => lines.includes('interrupted'));
    child.kill('SIGINT');
    await until(() => child.exitCode !== null || child.signalCode !== null, 10_000);
    t.equal(child.signalCode, 'SIGINT', 'a shell says 130');
  }
});
