import t from 'tap';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const dir = tempFolder(t);
let kid = '';
t.before(async () => {
  kid = (await newFolder(dir)).jwtKid;
});

t.test('a user is added, changed, listed and shown', async (t) => {
  const add = (...args: string[]) => collabJson<object>(t, ['user', 'add', ...args, '--env', 'default', '--dir', dir]);
  t.match(await add('ci-bot', '--name', 'CI', '--bot'), { id: 'ci-bot', userId: 'ci-bot', name: 'CI', kind: 'bot' });
  t.match(await add('ann/Ångström', '--name', 'Ann', '--email', 'ann@example.com'), {
    userId: 'ann/Ångström',
    kind: 'user',
  });
  t.match(await add('ci-bot', '--avatar-url', 'https://example.com/ci.png'), {
    name: 'CI',
    kind: 'bot',
    avatarUrl: 'https://example.com/ci.png',
  });
  const { items } = await collabJson<{ items: { userId: string }[] }>(t, [
    'user',
    'list',
    '--env',
    'default',
    '--dir',
    dir,
  ]);
  t.strictSame(items.map(({ userId }) => userId).toSorted(), ['ann/Ångström', 'ci-bot']);
  const found = await collabJson<{ items: { userId: string }[] }>(t, [
    'user',
    'list',
    '--env',
    'default',
    '--query',
    'ann',
    '--dir',
    dir,
  ]);
  t.strictSame(
    found.items.map(({ userId }) => userId),
    ['ann/Ångström'],
  );
  const shown = await collabJson<object>(t, ['user', 'show', 'ann/Ångström', '--env', 'default', '--dir', dir]);
  t.match(shown, { email: 'ann@example.com', online: false, lastSeenAt: null });
});

t.test('control characters in names are refused, and those that change the direction are replaced', async (t) => {
  const add = (name: string) => collab(['user', 'add', 'mallory', '--name', name, '--env', 'default', '--dir', dir]);
  t.match(await add('\u001b[2JGone'), {
    code: 2,
    stdout: '',
    stderr: /name must not contain line breaks or control characters such as "\\u001b"/,
  });
  t.match(await add('\u202eGone'), { code: 0 });
  const { stdout } = await collab(['user', 'list', '--env', 'default', '--dir', dir]);
  t.notOk(stdout.includes('\u202e'));
  t.match(stdout, /mallory +·Gone/);
});

t.test('an unknown user or environment is refused with advice', async (t) => {
  t.match(await collab(['user', 'show', 'nobody', '--env', 'default', '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /→ `collab user list/,
  });
  t.match(await collab(['user', 'list', '--env', 'nowhere', '--dir', dir]), {
    code: 1,
    stdout: '',
    stderr: /→ `collab env list --dir \S+` lists/,
  });
});

t.test('a token is signed with the secret of the environment', async (t) => {
  const made = await collabJson<{ token: string; expiresAt: string }>(t, [
    ...['token', 'create', '--env', 'default', '--user', 'ann', '--name', 'Ann', '--ttl', '2h'],
    ...['--role', 'viewer', '--rooms', 'docs/*,home', '--dir', dir],
  ]);
  t.strictSame(Object.keys(made), ['token', 'expiresAt']);
  const [head, claims] = made.token
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>);
  t.match(head, { alg: 'HS256', kid, typ: 'JWT' });
  t.match(claims, { sub: 'ann', name: 'Ann', role: 'viewer', rooms: ['docs/*', 'home'] });
  t.equal(Date.parse(made.expiresAt), Number(claims?.['exp']) * 1000);
  t.equal(Number(claims?.['exp']) - Number(claims?.['iat']), 7200);
});

t.test('a token for longer than the environment allows is refused, with the option and its bounds', async (t) => {
  const { code, stderr } = await collab([
    'token',
    'create',
    '--env',
    'default',
    '--user',
    'ann',
    '--ttl',
    '48h',
    '--dir',
    dir,
  ]);
  t.equal(code, 2);
  t.match(
    stderr,
    /^collab: --ttl must be from 1s to 1d, not "48h"\.\n {2}→ `collab env update default --token-lifetime <duration> --dir \S+` changes/,
  );
});
