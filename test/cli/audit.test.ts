import { readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { auditKey, auditOf } from '../../src/domain/records/partitions.ts';
import type { AuditRecord } from '../../src/model/environments/audit.ts';
import { startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const folder = tempFolder(t);
const dir = join(folder, 'server');
const backup = join(folder, 'backup');
const PASSWORD = 'correct horse battery';
let environmentId = '';

const list = async (...args: string[]): Promise<AuditRecord[]> =>
  (await collabJson<{ items: AuditRecord[] }>(t, ['audit', 'list', ...args, '--dir', dir])).items;

t.before(async () => {
  environmentId = (await newFolder(dir)).environment.id;
});

t.test('commands and admins leave records beside a running server, which admins read over HTTP', async (t) => {
  const server = await startServer(t, dir, ['--workers', '1']);
  await collabJson(t, ['key', 'create', '--env', 'default', '--kind', 'secret', '--scope', 'read', '--dir', dir]);
  await collabJson(t, ['env', 'update', 'default', '--max-file-size-mb', '25', '--dir', dir]);
  const { id } = await collabJson<{ id: string }>(t, [
    'admin',
    'create',
    'ops@example.com',
    '--password',
    PASSWORD,
    '--dir',
    dir,
  ]);
  const call = async (method: string, path: string, token?: string, body?: unknown) => {
    const headers = {
      'Content-Type': 'application/json',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    };
    return (await (
      await fetch(`${server.url}/api/v1/admin${path}`, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
      })
    ).json()) as Record<string, unknown>;
  };
  const { token } = (await call('POST', '/auth/login', undefined, {
    email: 'ops@example.com',
    password: PASSWORD,
  })) as { token: string };
  await call('POST', '/environments/default/keys', token, { kind: 'publishable' });

  const own = await list('--env', 'default');
  t.strictSame(
    own.map(({ action }) => action),
    [
      'environment.create',
      'key.create',
      'key.create',
      'signing-key.create',
      'key.create',
      'environment.update',
      'key.create',
    ],
  );
  t.strictSame(own[4]?.actor, { kind: 'cli', id: userInfo().username });
  t.strictSame(own.at(-1)?.actor, { kind: 'admin', id });
  t.match(own[5]?.details, { 'settings.maxFileSizeMb': 25 });
  t.strictSame(
    (await list()).map(({ action }) => action),
    ['environment.create', 'admin.create', 'admin.login'],
  );
  const read = await call('GET', '/audit?environment=default&since=5&limit=1', token);
  t.match(read, { items: [own[5]], seq: 7, hash: own[6]?.hash, nextSince: 6 });
  t.match((await collab(['audit', 'list', '--dir', dir])).stdout, /^SEQ +TIME +ACTOR +ACTION +TARGET +DETAILS\n/);
});

t.test('verify compares with a backup, and finds a changed and a cut log', async (t) => {
  await collabJson(t, ['backup', backup, '--dir', dir]);
  const intact = await collabJson<{ intact: boolean; seq: number; hash: string }>(t, [
    'audit',
    'verify',
    '--env',
    'default',
    '--backup',
    backup,
    '--dir',
    dir,
  ]);
  t.match(intact, { intact: true, seq: 7 });
  t.match(await collabJson(t, ['audit', 'verify', '--head', `7:${intact.hash}`, '--env', 'default', '--dir', dir]), {
    intact: true,
  });
  t.match(await collab(['audit', 'verify', '--head', `7:${'0'.repeat(64)}`, '--env', 'default', '--dir', dir]), {
    code: 1,
    stdout: /rewritten/,
    stderr: /has a fault/,
  });

  const file = join(folder, 'audit.ndjson');
  await collabJson(t, ['audit', 'export', file, '--env', 'default', '--dir', dir]);
  t.match(await collabJson(t, ['audit', 'verify', '--file', file]), { intact: true, seq: 7 });
  writeFileSync(file, readFileSync(file, 'utf8').replace('"settings.maxFileSizeMb":25', '"settings.maxFileSizeMb":26'));
  t.match(await collab(['audit', 'verify', '--file', file]), { code: 1, stdout: /record 6 was changed/ });
  t.match(await collab(['audit', 'export', file, '--dir', dir]), { code: 1, stderr: /exists already/ });
  t.match(await collab(['audit', 'verify', '--head', 'x', '--dir', dir]), { code: 2, stderr: /--head must be/ });

  const store = await openLmdbStore({ path: join(dir, 'data', 'store'), minFreeBytes: 0 });
  await store.transact((tx) => Promise.resolve(tx.delete(auditOf(environmentId), auditKey(3))));
  await store.close();
  t.match(await collab(['audit', 'verify', '--env', 'default', '--dir', dir]), {
    code: 1,
    stdout: /record 3 is missing/,
  });
  const { code, stdout } = await collab(['doctor', '--deep', '--dir', dir, '--json']);
  t.equal(code, 1);
  t.match(stdout, new RegExp(`the audit log of ${environmentId} is not intact: record 3 is missing`));
});

t.test('a restore is recorded', async (t) => {
  await collabJson(t, ['restore', backup, '--dir', dir, '--yes']);
  t.match((await list()).at(-1), { action: 'server.restore', actor: { kind: 'cli' }, details: { backup: String } });
  for (const chain of [[], ['--env', 'default']])
    t.match(await collabJson(t, ['audit', 'verify', ...chain, '--backup', backup, '--dir', dir]), { intact: true });
});

t.test('a command of a plugin that changes something is recorded, without what may be secret', async (t) => {
  const env = { COLLAB_PLUGINS: JSON.stringify([{ use: 'web-push', config: { subject: 'mailto:ops@example.com' } }]) };
  const run = <T = object>(...args: string[]): Promise<T> =>
    collabJson<T>(t, [...args, '--env', 'default', '--dir', dir], { env });
  const { seq } = await run<{ seq: number }>('audit', 'verify');
  const given = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const { id } = await run<{ id: string }>(
    'webhook',
    'add',
    '--url',
    'https://example.com/hooks?token=abc',
    '--secret',
    given,
  );
  await run('webhook', 'list');
  t.match(await collab(['webhook', 'rotate', 'wh_none', '--env', 'default', '--dir', dir]), {
    code: 2,
    stderr: /no webhook endpoint wh_none/,
  });
  const { secret } = await run<{ secret: string }>('webhook', 'rotate', id);
  await run('webhook', 'enable', id);
  await run('webhook', 'remove', id, '--yes');
  t.match([await run('web-push', 'keys'), await run('web-push', 'keys')], [{ created: true }, { created: false }]);

  const acts = (await list('--env', 'default')).slice(seq);
  const key = `endpoint/${id}`;
  t.strictSame(
    acts.map(({ action, target, details }) => [action, target.kind, target.id, details]),
    [
      ['plugin.command', 'plugin', 'webhook', { command: 'add', key }],
      ['plugin.command', 'plugin', 'webhook', { command: 'rotate', key }],
      ['plugin.command', 'plugin', 'webhook', { command: 'remove', key }],
      ['plugin.command', 'plugin', 'web-push', { command: 'keys', key: 'vapid-keys' }],
    ],
  );
  for (const { actor } of acts) t.strictSame(actor, { kind: 'cli', id: userInfo().username });
  for (const value of [given, secret, 'token=abc']) t.notOk(JSON.stringify(acts).includes(value));
  t.match(await run('audit', 'verify'), { intact: true, seq: seq + 4 });
});
