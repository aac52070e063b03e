import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { userUsageKey } from '../../src/domain/quotas/usage.ts';
import { inboxOf, usageOf } from '../../src/domain/records/partitions.ts';
import type { Attachment } from '../../src/model/attachment.ts';
import { wav } from '../fixtures/media.ts';
import { type InitOutput, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { until } from '../helpers/cluster.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { formOf } from '../helpers/upload.ts';
import { userToken } from '../helpers/user-token.ts';

interface Check {
  readonly name: string;
  readonly level: string;
  readonly finding: string;
  readonly remedy: string | null;
}

const dir = tempFolder(t);
let keys: InitOutput;
/** The id of the uploaded file. */
let fileId = '';

async function look(): Promise<{ code: number | null; of: (name: string) => readonly Check[] }> {
  const { code, stdout } = await collab(['doctor', '--deep', '--dir', dir, '--json'], { inside: true });
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  return { code, of: (name) => checks.filter((check) => check.name === name) };
}

t.before(async () => {
  keys = await newFolder(dir);
  const { secretKey, publishableKey } = keys;
  const server = await startServer(t, dir, ['--workers', '1']);
  const headers = { Authorization: `Bearer ${secretKey}`, 'Content-Type': 'application/json' };
  const send = (method: string, path: string, body: object): Promise<Response> =>
    fetch(`${server.url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
  for (const userId of ['ann', 'bob']) await send('PUT', `/users/${userId}`, { name: userId });
  const made = await send('POST', '/rooms/lobby/threads', { userId: 'ann', body: 'needle' });
  const { thread } = (await made.json()) as { thread: { id: string } };
  await send('POST', `/threads/${thread.id}/comments`, { userId: 'bob', body: 'two' });
  const uploaded = await fetch(`${server.url}/api/v1/upload`, {
    method: 'POST',
    headers: { 'X-Service-Key': publishableKey, 'X-Service-Token': await userToken(keys, 'ann') },
    body: formOf({ bytes: wav(1), type: 'audio/wav' }),
  });
  fileId = ((await uploaded.json()) as Attachment).id;
  await until(async () => {
    const inbox = await fetch(`${server.url}/api/v1/users/ann/notifications`, { headers });
    return ((await inbox.json()) as { unreadCount: number }).unreadCount === 1;
  });
  t.equal(await server.end(), 0);
});

t.test(
  'doctor --deep compares the counts for quotas and of unread notifications with what is stored, and gc corrects them',
  async (t) => {
    const { code, of } = await look();
    t.equal(code, 0);
    t.match(of('deep'), [{ level: 'ok', finding: /^\d+ records, \d+ events and 1 files are intact$/ }]);
    const quotas = { name: 'quotas', level: 'ok', finding: 'the usage counts of 1 environments match what is stored' };
    t.strictSame(of('quotas'), [{ ...quotas, remedy: null }]);
    t.match(of('inboxes'), [
      { level: 'ok', finding: 'the counts of unread notifications of 1 environments match what is stored' },
    ]);

    const { id } = keys.environment;
    const store = await openLmdbStore({ path: join(dir, 'data', 'store'), minFreeBytes: 0 });
    await store.transact(async (tx) => {
      tx.put(usageOf(id), userUsageKey('bob'), '41 0 0');
      tx.put(inboxOf(id, 'ann'), 'unread', '7');
    });
    await store.close();
    const wrong = await look();
    t.equal(wrong.code, 0);
    t.match(wrong.of('quotas'), [
      {
        level: 'warn',
        finding: /^the usage counts of default are wrong: user bob has 41 comments counted, but 1 stored$/,
        remedy: /^Recount: collab gc --dir /,
      },
    ]);
    t.match(wrong.of('inboxes'), [
      {
        level: 'warn',
        finding: 'the counts of unread notifications of default are wrong: user ann has 7 counted, but 1 stored',
        remedy: /^Recount: collab gc --dir /,
      },
    ]);

    await collabJson(t, ['gc', '--dir', dir]);
    const right = await look();
    for (const name of ['quotas', 'inboxes']) t.match(right.of(name), [{ level: 'ok' }]);
  },
);

t.test('doctor --deep names the file, the record and the event that one flipped bit has changed', async (t) => {
  const store = await openLmdbStore({ path: join(dir, 'data', 'store'), minFreeBytes: 0 });
  await store.checkpoint();
  await store.close();
  const files = readdirSync(join(dir, 'data', 'files'), { recursive: true, encoding: 'utf8' });
  flip(join(dir, 'data', 'files', files.find((path) => path.endsWith(fileId)) ?? ''), (bytes) => bytes.byteLength >> 1);
  const changed = await look();
  t.equal(changed.code, 1);
  t.strictSame(
    changed.of('deep').map(({ finding }) => finding),
    [`the file ${keys.environment.id} ${fileId} does not have the SHA-256 of its record`],
  );

  // Flips the quote before the word, in the record of the comment and in its event.
  flip(join(dir, 'data', 'store', 'data.mdb'), (bytes) => bytes.indexOf('"needle"'));
  flip(join(dir, 'data', 'store', 'data.mdb'), (bytes) => bytes.lastIndexOf('"needle"'));
  const { code, of } = await look();
  t.equal(code, 1);
  t.match(
    of('deep')
      .map(({ finding }) => finding)
      .join('\n'),
    /the stored data \(base table, e\/env_\w+\/\S+ \S+\) is corrupted/,
  );
});

/** Changes one bit of a file. */
function flip(path: string, at: (bytes: Buffer) => number): void {
  const bytes = readFileSync(path);
  const place = at(bytes);
  if (place < 0) return;
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place);
  writeFileSync(path, bytes);
}
