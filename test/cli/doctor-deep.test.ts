import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { userUsageKey } from '../../src/domain/quotas/usage.ts';
import { inboxOf, usageOf } from '../../src/domain/records/partitions.ts';
import type { Attachment } from '../../src/model/attachment.ts';
import { wav } from '../fixtures/media.ts';
import { startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { until } from '../helpers/cluster.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { formOf } from '../helpers/upload.ts';
import { userToken } from '../helpers/user-token.ts';

t.test('doctor --deep names the file, the record and the event that one flipped bit has changed', async (t) => {
  const dir = tempFolder(t);
  const keys = await newFolder(dir);
  const { secretKey, publishableKey, environment } = keys;
  await collabJson(t, ['user', 'add', 'ann', '--env', 'default', '--name', 'Ann', '--dir', dir]);
  const token = await userToken(keys, 'ann');
  const server = await startServer(t, dir, ['--workers', '1']);
  const headers = { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' };
  await fetch(`${server.url}/api/v1/rooms/lobby/threads`, {
    method: 'POST',
    headers,
    body: '{"userId":"ann","body":"needle"}',
  });
  const uploaded = await fetch(`${server.url}/api/v1/upload`, {
    method: 'POST',
    headers: { 'X-Service-Key': publishableKey, 'X-Service-Token': token },
    body: formOf({ bytes: wav(1), type: 'audio/wav' }),
  });
  const { id } = (await uploaded.json()) as Attachment;
  t.equal(await server.end(), 0);
  const store = await openLmdbStore({ path: join(dir, 'data', 'store'), minFreeBytes: 0 });
  await store.checkpoint();
  await store.close();

  const look = async () => {
    const { code, stdout } = await collab(['doctor', '--deep', '--dir', dir, '--json']);
    const { checks } = JSON.parse(stdout) as { checks: { name: string; level: string; finding: string }[] };
    return { code, found: checks.filter(({ name }) => name === 'deep').map(({ finding }) => finding) };
  };
  t.match(await look(), { code: 0, found: [/^\d+ records, \d+ events and 1 files are intact$/] });

  const files = readdirSync(join(dir, 'data', 'files'), { recursive: true, encoding: 'utf8' });
  flip(join(dir, 'data', 'files', files.find((path) => path.endsWith(id)) ?? ''), (bytes) => bytes.byteLength >> 1);
  t.match(await look(), {
    code: 1,
    found: [`the file ${environment.id} ${id} does not have the SHA-256 of its record`],
  });

  // Flips the quote before the word, in the record of the comment and in its event.
  flip(join(dir, 'data', 'store', 'data.mdb'), (bytes) => bytes.indexOf('"needle"'));
  flip(join(dir, 'data', 'store', 'data.mdb'), (bytes) => bytes.lastIndexOf('"needle"'));
  const { code, found } = await look();
  t.equal(code, 1);
  t.match(found.join('\n'), /the stored data \(base table, e\/env_\w+\/\S+ \S+\) is corrupted/);
});

t.test('doctor --deep compares the counts for quotas with what is stored, and gc corrects them', async (t) => {
  const dir = tempFolder(t);
  const { secretKey, environment } = await newFolder(dir);
  await collabJson(t, ['user', 'add', 'ann', '--env', 'default', '--name', 'Ann', '--dir', dir]);
  const server = await startServer(t, dir, ['--workers', '1']);
  const headers = { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' };
  await fetch(`${server.url}/api/v1/rooms/lobby/threads`, {
    method: 'POST',
    headers,
    body: '{"userId":"ann","body":"one"}',
  });
  t.equal(await server.end(), 0);

  const check = async () => {
    const { code, stdout } = await collab(['doctor', '--deep', '--dir', dir, '--json']);
    const { checks } = JSON.parse(stdout) as {
      checks: { name: string; level: string; finding: string; remedy: string | null }[];
    };
    return { code, quotas: checks.filter(({ name }) => name === 'quotas') };
  };
  t.strictSame(await check(), {
    code: 0,
    quotas: [
      { name: 'quotas', level: 'ok', finding: 'the usage counts of 1 environments match what is stored', remedy: null },
    ],
  });

  const store = await openLmdbStore({ path: join(dir, 'data', 'store'), minFreeBytes: 0 });
  await store.transact(async (tx) => tx.put(usageOf(environment.id), userUsageKey('ann'), '41 0 0'));
  await store.close();
  const wrong = await check();
  t.equal(wrong.code, 0);
  t.match(wrong.quotas, [
    {
      level: 'warn',
      finding: /^the usage counts of default are wrong: user ann has 41 comments counted, but 1 stored$/,
      remedy: /^Recount: collab gc --dir /,
    },
  ]);

  await collabJson(t, ['gc', '--dir', dir]);
  t.match((await check()).quotas, [{ level: 'ok' }]);
});

t.test(
  'doctor --deep compares the counts of unread notifications with what is stored, and gc corrects them',
  async (t) => {
    const dir = tempFolder(t);
    const { secretKey, environment } = await newFolder(dir);
    const server = await startServer(t, dir, ['--workers', '1']);
    const headers = { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' };
    for (const userId of ['ann', 'bob'])
      await fetch(`${server.url}/api/v1/users/${userId}`, { method: 'PUT', headers, body: `{"name":"${userId}"}` });
    const made = await fetch(`${server.url}/api/v1/rooms/lobby/threads`, {
      method: 'POST',
      headers,
      body: '{"userId":"ann","body":"one"}',
    });
    const { thread } = (await made.json()) as { thread: { id: string } };
    await fetch(`${server.url}/api/v1/threads/${thread.id}/comments`, {
      method: 'POST',
      headers,
      body: '{"userId":"bob","body":"two"}',
    });
    const unread = async (): Promise<number> => {
      const inbox = await fetch(`${server.url}/api/v1/users/ann/notifications`, { headers });
      return ((await inbox.json()) as { unreadCount: number }).unreadCount;
    };
    await until(async () => (await unread()) === 1);
    t.equal(await server.end(), 0);

    const check = async () => {
      const { stdout } = await collab(['doctor', '--deep', '--dir', dir, '--json']);
      const { checks } = JSON.parse(stdout) as {
        checks: { name: string; level: string; finding: string; remedy: string | null }[];
      };
      return checks.filter(({ name }) => name === 'inboxes');
    };
    t.match(await check(), [
      { level: 'ok', finding: 'the counts of unread notifications of 1 environments match what is stored' },
    ]);
    const store = await openLmdbStore({ path: join(dir, 'data', 'store'), minFreeBytes: 0 });
    await store.transact(async (tx) => tx.put(inboxOf(environment.id, 'ann'), 'unread', '7'));
    await store.close();
    t.match(await check(), [
      {
        level: 'warn',
        finding: 'the counts of unread notifications of default are wrong: user ann has 7 counted, but 1 stored',
        remedy: /^Recount: collab gc --dir /,
      },
    ]);
    await collabJson(t, ['gc', '--dir', dir]);
    t.match(await check(), [{ level: 'ok' }]);
  },
);

/** Changes one bit of a file. */
function flip(path: string, at: (bytes: Buffer) => number): void {
  const bytes = readFileSync(path);
  const place = at(bytes);
  if (place < 0) return;
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place);
  writeFileSync(path, bytes);
}
