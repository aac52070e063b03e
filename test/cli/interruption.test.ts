import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openDatabase } from '../../src/adapters/lmdb/env/database.ts';
import { collabJson, type InitOutput, startCollab, startServer } from '../helpers/cli.ts';
import { until } from '../helpers/cluster.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** The processes registered as readers of the log or the base table, with or without a snapshot. */
async function readersOf(store: string): Promise<number[]> {
  const { log, root } = await openDatabase(store);
  try {
    return [...log.readerList().matchAll(/^ *(\d+) /gm), ...root.readerList().matchAll(/^ *(\d+) /gm)].map(([, pid]) => Number(pid));
  } finally {
    await Promise.all([log.close(), root.close()]);
  }
}

t.test('an interrupted export leaves no reader and no file behind', async (t) => {
  const dir = tempFolder(t);
  const store = join(dir, 'data', 'store');
  const { secretKey } = await collabJson<InitOutput>(t, ['init', '--dir', dir]);
  const server = await startServer(t, dir, ['--workers', '1']);
  const headers = { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/octet-stream' };
  for (const room of ['a', 'b', 'c']) {
    const answer = await fetch(`${server.url}/api/v1/rooms/${room}/p2p/state`, { method: 'PUT', headers, body: Buffer.alloc(1_000_000) });
    t.ok(answer.ok, await answer.text());
  }
  for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]] as const) {
    // The pipe is not read any more, so the export waits before it has read most of the store.
    const running = startCollab(t, ['export', '-', '--dir', dir]);
    const { pid = 0, stdout } = running.process;
    stdout?.pause();
    await until(() => (stdout?.readableLength ?? 0) > 0);
    t.ok((await readersOf(store)).includes(pid));
    t.equal(await running.end(signal), code);
    t.notOk((await readersOf(store)).includes(pid));
    t.equal(running.errors(), '', 'it says nothing: who interrupted it knows');
  }

  const killed = startCollab(t, ['tail', '--env', 'default', '--dir', dir]);
  await until(() => killed.errors().includes('Following'));
  const { pid = 0 } = killed.process;
  t.ok((await readersOf(store)).includes(pid));
  killed.process.kill('SIGKILL');
  await once(killed.process, 'exit');
  await until(async () => !(await readersOf(store)).includes(pid));
  t.pass('the server frees the readers of one that was killed');
  t.same(readdirSync(dir).filter((name) => name.includes('partial')), []);
  t.equal(await server.end(), 0);
});
