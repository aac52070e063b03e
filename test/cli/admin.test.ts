import t from 'tap';
import type { Admin } from '../../src/model/environments/admin.ts';
import { type Server, startServer } from '../helpers/cli.ts';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const dir = tempFolder(t);
let server: Server;
t.before(async () => {
  await newFolder(dir);
  server = await startServer(t, dir, ['--workers', '1'], { env: { COLLAB_RATE_LIMIT_EXEMPT: '127.0.0.1' } });
});

const PASSWORD = 'correct horse battery';

function admin<T>(...args: string[]): Promise<T> {
  return collabJson<T>(t, ['admin', ...args, '--dir', dir]);
}

t.test('an admin is created, once, and listed', async (t) => {
  t.strictSame(await admin('list'), { items: [] });
  const made = await admin<Admin>('create', 'Ops@Example.com', '--password', PASSWORD);
  t.strictSame(Object.keys(made), ['id', 'email', 'role', 'createdAt']);
  t.match(made, { id: /^admin_/, email: 'ops@example.com', role: 'admin' });
  t.strictSame(await admin('list'), { items: [made] });
  t.match((await collab(['admin', 'list', '--dir', dir])).stdout, /^EMAIL +ID +CREATED\nops@example\.com /);

  t.match(await collab(['admin', 'create', 'ops@example.com', '--password', PASSWORD, '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /already.*\n {2}→ `collab admin password/,
  });
});

t.test('an invalid admin is refused with the reason', async (t) => {
  const refuse = async (args: string[], stderr: RegExp): Promise<void> => {
    t.match(await collab(['admin', ...args, '--dir', dir]), { code: 2, stdout: '', stderr });
  };
  await refuse(['create', 'a@example.com', '--password', 'short'], /password must be at least 12 characters/);
  await refuse(['create', 'a@example.com', '--password', 'é'.repeat(513)], /password must be at most 1024 bytes/);
  await refuse(['create', 'no address', '--password', PASSWORD], /email must be an email address/);
  await refuse(['create', 'a@example.com'], /no terminal to ask for it.*\n {2}→ Pass it with --password/);
});

t.test('a running server applies what commands have changed at once', async (t) => {
  const ask = (method: string, path: string, token: string | null, body?: unknown) =>
    fetch(`${server.url}/api/v1/admin${path}`, {
      method,
      headers: { 'Content-Type': 'application/json', ...(token !== null && { Authorization: `Bearer ${token}` }) },
      body: body === undefined ? null : JSON.stringify(body),
    });
  const login = async (password: string): Promise<Response> =>
    ask('POST', '/auth/login', null, { email: 'ops@example.com', password });

  const answer = await login(PASSWORD);
  t.equal(answer.status, 200);
  const { token } = (await answer.json()) as { token: string };
  const made = await ask('POST', '/environments', token, { slug: 'made-by-admin' });
  t.equal(made.status, 201);
  t.match(await collabJson(t, ['env', 'show', 'made-by-admin', '--dir', dir]), { slug: 'made-by-admin' });

  const key = (await (
    await ask('POST', '/environments/made-by-admin/keys', token, { kind: 'secret', name: 'ci' })
  ).json()) as { key: { id: string; secretKey: string } };
  const use = () => fetch(`${server.url}/api/v1/rooms`, { headers: { Authorization: `Bearer ${key.key.secretKey}` } });
  t.equal((await use()).status, 200);

  await admin('password', 'ops@example.com', '--password', 'another long password');
  t.equal((await ask('GET', '/auth/me', token)).status, 401, 'the session has ended');
  t.equal((await login(PASSWORD)).status, 401);
  t.equal((await login('another long password')).status, 200);

  await server.end();
  const { items } = await collabJson<{ items: { id: string; lastUsedAt: string | null }[] }>(t, [
    'key',
    'list',
    '--env',
    'made-by-admin',
    '--dir',
    dir,
  ]);
  t.match(
    items.find(({ id }) => id === key.key.id),
    { lastUsedAt: /^\d{4}-.*Z$/ },
    'what was used last is written before the end at the latest',
  );
});

t.test('an admin is removed', async (t) => {
  const { items } = await admin<{ items: Admin[] }>('list');
  const [made] = items;
  t.match(await collab(['admin', 'remove', 'ops@example.com', '--dir', dir]), {
    code: 2,
    stderr: /removes the admin ops@example\.com.*\n {2}→ Add --yes/,
  });
  t.strictSame(await admin('remove', 'OPS@example.com', '--yes'), {
    removed: true,
    id: made?.id,
    email: 'ops@example.com',
  });
  t.match(await collab(['admin', 'remove', 'ops@example.com', '--yes', '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /→ `collab admin list --dir \S+` lists/,
  });
});
