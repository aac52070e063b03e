import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Manifest } from '../../src/cli/backup/backup-folder.ts';
import { wav } from '../fixtures/media.ts';
import { type InitOutput, type Server, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { uploadSound } from '../helpers/upload.ts';
import { TestSocket } from '../helpers/socket.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { userToken } from '../helpers/user-token.ts';

const folder = tempFolder(t);
const dir = join(folder, 'live');
const good = join(folder, 'good');
let keys: InitOutput;
let token = '';
let position = { epoch: '', seq: 0 };
/** The part of a client's epoch that identifies the store. */
const storePart = (epoch: string): string => epoch.split('-', 1).join();
/** The path of the only file, in a backup and in a data folder. */
let filePath = '';

/** Opens a socket of ann on a server, from a position. */
async function connect(t: Test, server: Server, since: { epoch: string; seq: number }): Promise<TestSocket> {
  const url = `${server.url.replace('http', 'ws')}/api/v1/ws?epoch=${since.epoch}&since=${since.seq}`;
  const socket = new TestSocket(url, { headers: { 'X-Service-Key': keys.publishableKey, 'X-Service-Token': token } });
  t.teardown(() => socket.terminate());
  await socket.frame('welcome');
  return socket;
}

async function api<T>(server: Server, method: string, path: string, body?: object): Promise<T> {
  const headers = { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json' };
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as T;
}

interface Items {
  readonly items: readonly { readonly id: string; readonly body: string }[];
}

t.before(async () => {
  keys = await newFolder(dir);
  writeFileSync(
    join(dir, 'config.json'),
    JSON.stringify({ rateLimit: { exempt: ['127.0.0.1'] }, storage: { minFreeMb: 0 } }),
  );
  token = await userToken(keys, 'ann');
});

t.test('a backup of a server under write load is complete, and its manifest describes it', async (t) => {
  const server = await startServer(t, dir, ['--workers', '2']);
  await api(server, 'PUT', '/users/ann', { name: 'Ann' });
  const { thread } = await api<{ thread: { id: string } }>(server, 'POST', '/rooms/lobby/threads', {
    userId: 'ann',
    body: 'first',
  });
  const file = await uploadSound(server, keys, token);
  filePath = `files/${keys.environment.id}/${file.id.slice(0, 10)}/${file.id}`;
  writeFileSync(join(dir, 'data/files/.staging/half'), 'half a file');
  writeFileSync(join(dir, 'data/files', keys.environment.id, file.id.slice(0, 10), 'stray'), 'of no record');

  let writing = true;
  let written = 0;
  const writer = (async () => {
    for (; writing; written++)
      await api(server, 'POST', `/threads/${thread.id}/comments`, { userId: 'ann', body: `comment ${written}` });
  })();
  while (written < 20) await new Promise((resolve) => setTimeout(resolve, 5));
  const before = written;
  const made = await collabJson<Manifest & { folder: string; verified: boolean }>(t, ['backup', good, '--dir', dir]);
  t.ok(written > before, 'the server went on');
  writing = false;
  await writer;
  const seen = await connect(t, server, { epoch: '', seq: 0 });
  const { data } = await seen.frame('welcome');
  position = { epoch: String(data?.['epoch']), seq: made.store.events };

  t.match(made, {
    kind: 'collab-backup',
    folder: good,
    verified: true,
    store: { environments: 1, epoch: storePart(position.epoch) },
    files: { count: 1, bytes: file.sizeBytes, missing: [], damaged: [] },
  });
  t.ok(made.store.events >= before + 1, `${made.store.events} events of ${written} comments`);
  t.strictSame(readdirSync(good).toSorted(), ['SHA256SUMS', 'files', 'manifest.json', 'store']);
  t.equal(statSync(join(good, 'store/data.mdb')).mode & 0o077, 0, 'nobody else can read it');
  t.match(
    readFileSync(join(good, 'SHA256SUMS'), 'utf8'),
    new RegExp(`^[0-9a-f]{64} {2}store/data\\.mdb\n[0-9a-f]{64} {2}${filePath}\n$`),
  );
  t.strictSame(readdirSync(join(dir, 'data/files/.holds')), [], 'files may be deleted again');
  t.strictSame(
    JSON.parse(readFileSync(join(good, 'manifest.json'), 'utf8')),
    JSON.parse(JSON.stringify({ ...made, folder: undefined, verified: undefined })),
  );
  t.equal(await server.end(), 0);
});

t.test('a backup is never written into a folder that is not empty', async (t) => {
  t.match(await collab(['backup', good, '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /is not empty, so no backup was written\.\n {2}→ Choose a folder that is empty or does not exist/,
  });
  t.match(await collab(['backup', join(folder, 'x'), '--dir', join(folder, 'nothing')]), {
    code: 1,
    stdout: '',
    stderr: /There is no Collab folder/,
  });
  t.notOk(existsSync(join(folder, 'x')));
});

t.test(
  'it is restored into a new folder, where clients have to reload, and not while a server runs there',
  async (t) => {
    const to = join(folder, 'restored');
    const done = await collabJson<{ epoch: string; movedAside: null; dataDir: string }>(t, [
      'restore',
      good,
      '--dir',
      to,
    ]);
    t.not(done.epoch, storePart(position.epoch));
    const epoch = position.epoch.replace(storePart(position.epoch), done.epoch);
    t.match(done, { movedAside: null, dataDir: join(to, 'data') });
    t.strictSame(readFileSync(join(to, 'data', filePath)), wav(0.1));
    t.notOk(existsSync(join(to, 'data/files/.staging')));
    const server = await startServer(t, to, ['--workers', '1'], { env: { COLLAB_RATE_LIMIT_EXEMPT: '127.0.0.1' } });
    const resumed = await connect(t, server, position);
    t.match(await resumed.frame('welcome'), { data: { recovered: false, epoch, seq: position.seq } });
    const { items } = await api<Items>(server, 'GET', '/rooms/lobby/threads');
    t.equal(items.length, 1);
    const { items: comments } = await api<Items>(server, 'GET', `/threads/${items[0]?.id}/comments`);
    t.equal(comments.length, position.seq - 1, 'every comment whose event is in the copy, and no other');
    const again = await connect(t, server, { epoch, seq: position.seq - 2 });
    t.match(await again.frame('welcome'), { data: { recovered: true } }, 'by the new name a client resumes');

    t.match(await collab(['restore', good, '--dir', to, '--yes']), {
      code: 1,
      stdout: '',
      stderr: /A server is running on .*nothing was restored.*\n {2}→ Stop it first/,
    });
  },
);

t.test('a restore over data needs a confirmation, and moves the old data aside', async (t) => {
  const to = join(folder, 'over');
  const own = await collabJson<InitOutput>(t, ['init', '--dir', to]);
  t.match(await collab(['restore', good, '--dir', to]), {
    code: 2,
    stdout: '',
    stderr: /replaces the data in .*Nothing was changed.*\n {2}→ Add --yes/,
  });
  const { movedAside } = await collabJson<{ movedAside: string }>(t, ['restore', good, '--dir', to, '--yes']);
  t.ok(existsSync(join(movedAside, 'store/data.mdb')));
  const { items } = await collabJson<{ items: { id: string }[] }>(t, ['env', 'list', '--dir', to]);
  t.strictSame(
    items.map(({ id }) => id),
    [keys.environment.id],
  );
  t.not(own.environment.id, keys.environment.id);
});

t.test('an incomplete or damaged backup is refused, and nothing changes', async (t) => {
  const to = join(folder, 'untouched');
  const bad = join(folder, 'bad');
  const refuse = async (stderr: RegExp): Promise<void> => {
    t.match(await collab(['restore', bad, '--dir', to]), { code: 1, stdout: '', stderr });
    t.notOk(existsSync(join(to, 'data/store')));
  };
  await refuse(/is not a complete backup/);
  await collabJson(t, ['backup', bad, '--dir', dir]);
  appendFileSync(join(bad, filePath), '!');
  await refuse(
    /is damaged: files\/env_\w+\/file_\w+\/file_\w+ is missing, is a symbolic link, or was changed\. Nothing was restored/,
  );
  rmSync(join(bad, 'files'), { recursive: true });
  await refuse(/is damaged: files\/env_/);
  appendFileSync(join(bad, 'SHA256SUMS'), '\n');
  await refuse(/is damaged: SHA256SUMS/);
  writeFileSync(join(bad, 'manifest.json'), '{}');
  await refuse(/was not written by `collab backup`/);
  writeFileSync(
    join(bad, 'manifest.json'),
    JSON.stringify({ ...(JSON.parse(readFileSync(join(good, 'manifest.json'), 'utf8')) as object), format: 99 }),
  );
  await refuse(/created by a newer release of Collab/);
});
