import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Manifest } from '../../src/cli/backup/backup-folder.ts';
import type { Attachment } from '../../src/model/attachment.ts';
import { type InitOutput, type Server, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { until } from '../helpers/cluster.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { uploadSound } from '../helpers/upload.ts';
import { userToken } from '../helpers/user-token.ts';

const folder = tempFolder(t);
const dir = join(folder, 'live');
const BACKUPS = 2;
/** How many comments with a file there are at any moment (or one more). */
const LIVING = 40;
let keys: InitOutput;
let token = '';
/** Uploaded when the backups were made. */
let late: Attachment[];

type BackupOutput = Manifest & { readonly verified: boolean };

interface Check {
  readonly name: string;
  readonly level: string;
  readonly finding: string;
}

async function api<T>(server: Server, method: string, path: string, body?: object): Promise<T> {
  const headers = { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json' };
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

async function filesCheck(of: string): Promise<Check | undefined> {
  const { stdout } = await collab(['doctor', '--dir', of, '--json'], { inside: true });
  return (JSON.parse(stdout) as { checks: Check[] }).checks.find(({ name }) => name === 'files');
}

/** The files on a server's disk. */
const fileAt = (data: string, { id }: Pick<Attachment, 'id'>): string =>
  join(data, 'files', keys.environment.id, id.slice(0, 10), id);

t.before(async () => {
  keys = await newFolder(dir);
  writeFileSync(
    join(dir, 'config.json'),
    JSON.stringify({ rateLimit: { exempt: ['127.0.0.1'] }, storage: { minFreeMb: 0 } }),
  );
  token = await userToken(keys, 'ann');
});

t.test('backups of a server that keeps deleting files contain every file that their records name', async (t) => {
  const server = await startServer(t, dir, ['--workers', '1']);
  await api(server, 'PUT', '/users/ann', { name: 'Ann' });
  const { thread } = await api<{ thread: { id: string } }>(server, 'POST', '/rooms/lobby/threads', {
    userId: 'ann',
    body: 'first',
  });
  interface Written {
    readonly comment: string;
    readonly file: Attachment;
  }
  const write = async (): Promise<Written> => {
    const file = await uploadSound(server, keys, token);
    const { comment } = await api<{ comment: { id: string } }>(server, 'POST', `/threads/${thread.id}/comments`, {
      userId: 'ann',
      body: '',
      attachmentIds: [file.id],
    });
    return { comment: comment.id, file };
  };
  const living: Written[] = [];
  while (living.length < LIVING) living.push(await write());
  let loading = true;
  const load = (async () => {
    while (loading) {
      living.push(await write());
      const [oldest] = living.splice(0, 1);
      await api(server, 'DELETE', `/comments/${oldest?.comment}`);
      // Some file is deleted at any moment of a backup all the same, and the processor has time for other tests.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  const made: BackupOutput[] = [];
  for (let i = 0; i < BACKUPS; i++)
    made.push(await collabJson<BackupOutput>(t, ['backup', join(folder, `backup${i}`), '--dir', dir]));
  loading = false;
  await load;
  const gone = await write();
  await api(server, 'DELETE', `/comments/${gone.comment}`);
  await until(() => !existsSync(fileAt(join(dir, 'data'), gone.file)));
  late = [await uploadSound(server, keys, token), await uploadSound(server, keys, token)];
  t.equal(await server.end(), 0);
  for (const { verified, files } of made) {
    t.match({ verified, missing: files.missing, damaged: files.damaged }, { verified: true, missing: [], damaged: [] });
    t.ok(files.count === LIVING || files.count === LIVING + 1, `${files.count} files`);
  }
  for (let i = 0; i < BACKUPS; i++) {
    const to = join(folder, `restored${i}`);
    await collabJson(t, ['restore', join(folder, `backup${i}`), '--dir', to]);
    t.match(await filesCheck(to), { level: 'ok', finding: `${made[i]?.files.count}, each with its record` });
  }
});

t.test('every file that the restored server shows can be loaded', async (t) => {
  const to = join(folder, 'restored0');
  const server = await startServer(t, to, ['--workers', '1'], { env: { COLLAB_RATE_LIMIT_EXEMPT: '127.0.0.1' } });
  const { items } = await api<{ items: { id: string }[] }>(server, 'GET', '/rooms/lobby/threads');
  const page = await api<{ items: { attachments: Attachment[] }[] }>(
    server,
    'GET',
    `/threads/${items[0]?.id}/comments?limit=100`,
  );
  const attachments = page.items.flatMap((item) => item.attachments);
  t.ok(attachments.length >= LIVING);
  for (const { url } of attachments) {
    const answer = await fetch(server.url + new URL(url).pathname, {
      headers: { 'X-Service-Key': keys.publishableKey, 'X-Service-Token': token },
    });
    t.equal(answer.status, 200);
    await answer.arrayBuffer();
  }
});

t.test('a backup reports the files that the server itself has lost or damaged, and fails', async (t) => {
  const to = join(folder, 'faulty');
  const [gone, flipped] = late;
  if (gone === undefined || flipped === undefined) throw new Error('two files were uploaded');
  rmSync(fileAt(join(dir, 'data'), gone));
  const bytes = readFileSync(fileAt(join(dir, 'data'), flipped));
  bytes.writeUInt8(bytes.readUInt8(50) ^ 1, 50);
  writeFileSync(fileAt(join(dir, 'data'), flipped), bytes);

  const { code, stdout, stderr } = await collab(['backup', to, '--dir', dir, '--json']);
  t.equal(code, 1);
  const missing = [`${keys.environment.id}/${gone.id}`];
  const damaged = [`${keys.environment.id}/${flipped.id.slice(0, 10)}/${flipped.id}`];
  t.match(JSON.parse(stdout), { verified: false, files: { missing, damaged } });
  // On a slow machine, lines about the progress come before.
  t.match(JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? ''), {
    error: {
      message:
        /The backup is complete, but one file is missing on the server \(env_\w+\/file_\w+\), and one file is damaged on the server \(/,
      remedies: [/./],
    },
  });
  t.match(JSON.parse(readFileSync(join(to, 'manifest.json'), 'utf8')), { files: { missing, damaged } });
  t.match(
    readFileSync(join(to, 'SHA256SUMS'), 'utf8'),
    createHash('sha256').update(bytes).digest('hex'),
    'it is in the backup as it is',
  );
  const told = await collab(['backup', join(folder, 'faulty too'), '--dir', dir]);
  t.match(told, { code: 1, stdout: /^The backup was written, but files of the server are missing or damaged\.\n/ });
  t.notMatch(told.stdout, /complete|verified/);
  t.match(await collab(['restore', to, '--dir', join(folder, 'from faulty')]), {
    code: 0,
    stderr: /In the backup 2 files are missing or damaged/,
  });
});

t.test('a flipped bit in a backup is detected when it is restored', async (t) => {
  const bad = join(folder, 'backup1');
  const [line = ''] = readFileSync(join(bad, 'SHA256SUMS'), 'utf8').split('\n').slice(1);
  appendFileSync(join(bad, line.slice(66)), '!');
  t.match(await collab(['restore', bad, '--dir', join(folder, 'x')]), { code: 1, stderr: /is damaged: files\// });
});
