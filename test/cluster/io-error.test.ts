import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { collab, startServer } from '../helpers/cli.ts';
import { until } from '../helpers/cluster.ts';
import { failingDisk, noFailingDisk } from '../helpers/failing-disk.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { formOf, uploadSound } from '../helpers/upload.ts';
import { userToken } from '../helpers/user-token.ts';
import { wav } from '../fixtures/media.ts';

/**
 * A server. After `breakDisk` is called, the next call of a kind (by default the write of a meta page) on `file` (in
 * the data folder) or below it fails. test/fixtures/eio.c has the kinds.
 */
async function started(t: Test, file: string) {
  const { folder, env, failOnce, hasFailed } = failingDisk(t, join('collab/data', file));
  const dir = join(folder, 'collab');
  const keys = await newFolder(dir);
  const { secretKey } = keys;
  const server = await startServer(t, dir, ['--workers', '1'], { env });
  const put = (name: string): Promise<Response> =>
    fetch(`${server.url}/api/v1/users/${name}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json', Connection: 'close' },
      body: `{"name":"${name}"}`,
    });
  const log = (): { worker: string; msg: string; err?: { message: string } }[] =>
    server
      .errors()
      .split('\n')
      .filter((line) => line.startsWith('{"level"'))
      .map((line) => JSON.parse(line));
  const failures = () => log().filter(({ msg }) => msg === 'this worker has failed and exits');
  return { server, dir, keys, put, log, failures, breakDisk: (call = 'meta') => failOnce(call), broken: hasFailed };
}

t.test(
  'a background worker whose base table fails with an I/O error ends with a clear log line and is replaced',
  { skip: noFailingDisk },
  async (t) => {
    const { server, dir, put, log, failures, breakDisk, broken } = await started(t, 'store/data.mdb');
    t.equal((await put('ann')).status, 200);
    breakDisk();
    t.equal((await put('bob')).status, 200);
    // A checkpoint runs when the log is 5 s old.
    await until(broken, 30_000);
    await until(() => log().some(({ msg }) => /is replaced/.test(msg)), 30_000);
    t.match(failures(), [
      { worker: /^background/, err: { message: /data\.mdb any more: an I\/O error .*\(MDB_PANIC\).*dmesg/ } },
    ]);
    await until(async () => (await fetch(`${server.url}/readyz`)).ok, 30_000);
    t.equal((await put('cid')).status, 200);
    t.match(await collab(['doctor', '--dir', dir]), { code: 0, stdout: /ready +the server accepts reads and writes/ });
    t.equal(await server.end(), 0);
  },
);

t.test(
  'a web worker whose write-ahead log fails with an I/O error logs that, and is replaced',
  { skip: noFailingDisk },
  async (t) => {
    const { server, put, log, failures, breakDisk } = await started(t, 'store/log/data.mdb');
    t.equal((await put('ann')).status, 200);
    breakDisk();
    const refused = await put('bob');
    t.same([refused.status, refused.headers.get('x-error-code')], [500, 'storage_failed']);
    t.match(await refused.text(), /I\/O error/);
    await until(() => log().some(({ msg }) => /is replaced/.test(msg)), 30_000);
    t.match(failures(), [{ worker: /^web/, err: { message: /log\/data\.mdb any more/ } }]);
    await until(async () => (await put('bob').catch(() => null))?.status === 200, 30_000);
    t.equal(await server.end(), 0);
  },
);

t.test(
  'an upload that fails with an I/O error is answered with storage_failed, and nothing of it is left',
  { skip: noFailingDisk },
  async (t) => {
    const { server, dir, keys, breakDisk, broken } = await started(t, 'files');
    const token = await userToken(keys, 'ann');
    const headers = { 'X-Service-Key': keys.publishableKey, 'X-Service-Token': token };
    const files = (): string[] =>
      readdirSync(join(dir, 'data', 'files'), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name);
    // Makes the folder of the next files, so that the flush of a folder that fails is the one after the file was moved
    // there.
    const { id } = await uploadSound(server, keys, token);
    for (const call of ['write', 'fdatasync', 'rename', 'fsync']) {
      breakDisk(call);
      const refused = await fetch(`${server.url}/api/v1/upload`, {
        method: 'POST',
        headers,
        body: formOf({ bytes: wav(0.1), type: 'audio/wav' }),
      });
      t.same([refused.status, refused.headers.get('x-error-code')], [500, 'storage_failed'], call);
      t.match(await refused.text(), /I\/O error/);
      t.ok(broken(), `the ${call} has failed`);
      t.same(files(), [id], call);
    }
    await uploadSound(server, keys, token);
    t.equal(files().length, 2);
    t.equal(await server.end(), 0);
  },
);
