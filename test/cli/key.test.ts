import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collab, collabJson } from '../helpers/command.ts';
import { newFolder } from '../helpers/new-folder.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const dir = tempFolder(t);
t.before(() => newFolder(dir));

type Listed = { readonly id: string; readonly state: string };

function create(...args: string[]): Promise<Record<string, unknown>> {
  return collabJson<Record<string, unknown>>(t, ['key', 'create', '--env', 'default', ...args, '--dir', dir]);
}

async function stateOf(id: unknown): Promise<string | undefined> {
  const { items } = await collabJson<{ items: Listed[] }>(t, ['key', 'list', '--env', 'default', '--dir', dir]);
  return items.find((item) => item.id === id)?.state;
}

t.test('a secret key has the given rights', async (t) => {
  const made = await create(
    '--kind',
    'secret',
    '--name',
    'ci',
    '--scope',
    'read',
    '--rooms',
    'docs/*',
    '--expires',
    '90d',
    '--rate-limit',
    'unlimited',
  );
  t.strictSame(Object.keys(made).slice(0, 3), ['id', 'kind', 'secretKey']);
  t.match(made, {
    kind: 'secret',
    secretKey: /^sk_default_/,
    name: 'ci',
    scope: 'read',
    rooms: 'docs/*',
    rateLimit: 'unlimited',
  });
  const days = (Date.parse(String(made['expiresAt'])) - Date.parse(String(made['createdAt']))) / 86_400_000;
  t.equal(Math.round(days), 90);
});

t.test('a secret key may do everything by default and is limited per address', async (t) => {
  t.match(await create('--kind', 'secret'), { scope: 'full', rooms: null, rateLimit: null, expiresAt: null });
  t.match(await create('--kind', 'secret', '--rate-limit', '1000'), { rateLimit: 1000 });
});

t.test('a publishable key is not secret and stays visible', async (t) => {
  const made = await create('--kind', 'publishable');
  t.strictSame(Object.keys(made).slice(0, 3), ['id', 'kind', 'publishableKey']);
  const { stdout } = await collab(['key', 'list', '--env', 'default', '--dir', dir]);
  t.ok(stdout.includes(String(made['publishableKey'])));
});

t.test('lists show no secret', async (t) => {
  const made = await create('--kind', 'secret');
  const signing = await create('--kind', 'signing');
  for (const form of [[], ['--json']]) {
    const { stdout } = await collab(['key', 'list', '--env', 'default', '--dir', dir, ...form]);
    t.ok(stdout.includes(String(made['id'])));
    t.ok(stdout.includes(String(signing['kid'])));
    t.notOk(stdout.includes(String(made['secretKey'])));
    t.notOk(stdout.includes(String(signing['jwtSecret'])));
  }
});

t.test('a revoked key is listed as revoked; revoking it again has no effect, and says so', async (t) => {
  const { id } = await create('--kind', 'secret');
  t.match(await collab(['key', 'revoke', String(id), '--dir', dir]), { code: 2, stderr: /Add --yes/ });
  t.equal(await stateOf(id), 'active');
  for (let i = 0; i < 2; i++)
    t.strictSame(await collabJson(t, ['key', 'revoke', String(id), '--yes', '--dir', dir]), { revoked: true, id });
  t.equal(await stateOf(id), 'revoked');
  const again = await collab(['key', 'revoke', String(id), '--dir', dir]);
  t.match(again, {
    code: 0,
    stdout: new RegExp(`^The key ${String(id)} was revoked already, at 20\\S+Z\\. Nothing was changed\\.\n$`),
    stderr: '',
  });
  t.match(await collab(['key', 'revoke', 'key_none', '--yes', '--dir', dir]), {
    code: 1,
    stderr: /→ `collab key list/,
  });
});

t.test('rotation creates a key with the same rights; the old one works for the overlap', async (t) => {
  const old = await create('--kind', 'secret', '--name', 'bot', '--scope', 'moderate', '--rooms', 'a*');
  const made = await collabJson<Record<string, unknown>>(t, [
    'key',
    'rotate',
    String(old['id']),
    '--overlap',
    '1h',
    '--dir',
    dir,
  ]);
  t.match(made, {
    kind: 'secret',
    secretKey: /^sk_/,
    scope: 'moderate',
    rooms: 'a*',
    name: 'bot',
    replaces: old['id'],
  });
  t.not(made['secretKey'], old['secretKey']);
  t.equal(await stateOf(old['id']), 'active');
  const { items } = await collabJson<{ items: { id: string; expiresAt: string | null }[] }>(t, [
    'key',
    'list',
    '--env',
    'default',
    '--dir',
    dir,
  ]);
  const expiry = Date.parse(items.find(({ id }) => id === old['id'])?.expiresAt ?? '') - Date.now();
  t.ok(expiry > 3_500_000 && expiry <= 3_600_000, 'within the hour');
});

t.test('signing keys are secrets or public keys of an identity provider', async (t) => {
  const own = await create('--kind', 'signing', '--kid', 'mine');
  t.match(own, { id: 'mine', kind: 'signing', alg: 'HS256', source: 'secret' });
  t.ok(String(own['jwtSecret']).length >= 32);
  const file = join(dir, 'idp.pem');
  writeFileSync(file, generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }));
  t.match(await create('--kind', 'signing', '--alg', 'EdDSA', '--public-key', file, '--kid', 'idp'), {
    id: 'idp',
    alg: 'EdDSA',
    source: 'public',
  });
  t.match(await collab(['key', 'rotate', 'idp', '--dir', dir]), {
    code: 2,
    stderr: /→ Add the provider's new key: .*collab.* key create --env default/,
  });
  t.match(await collab(['key', 'create', '--env', 'default', '--kind', 'signing', '--kid', 'mine', '--dir', dir]), {
    code: 1,
    stderr: /mine/,
  });
  t.strictSame(await collabJson(t, ['key', 'revoke', 'idp', '--yes', '--dir', dir]), { revoked: true, id: 'idp' });
  t.equal(await stateOf('idp'), undefined);
  const made = await collabJson<Record<string, unknown>>(t, ['key', 'rotate', 'mine', '--dir', dir]);
  t.match(made, { kind: 'signing', alg: 'HS256', source: 'secret', replaces: 'mine' });
  t.ok(String(made['jwtSecret']).length >= 32);
  for (const kid of ['mine', String(made['id'])]) t.equal(await stateOf(kid), 'active', `${kid} verifies`);
});

t.test('an option of another kind of key is refused, not ignored', async (t) => {
  const refuse = async (args: string[], stderr: RegExp): Promise<void> => {
    t.match(await collab(['key', 'create', '--env', 'default', ...args, '--dir', dir]), {
      code: 2,
      stdout: '',
      stderr,
    });
  };
  await refuse(['--kind', 'publishable', '--scope', 'read'], /--scope does not apply to publishable keys/);
  await refuse(['--kind', 'secret', '--public-key', 'x'], /--public-key does not apply to secret keys/);
  await refuse(['--kind', 'signing', '--alg', 'RS256'], /--alg needs --public-key <file> or --jwks <url>/);
  await refuse(['--kind', 'signing', '--jwks', 'https://x'], /--alg is missing/);
  await refuse(
    ['--kind', 'secret', '--rate-limit', '0'],
    /--rate-limit must be a whole number from 1 to 1000000, not "0"/,
  );
  await refuse(['--kind', 'secret', '--expires', '1y'], /--expires must be a duration/);
  await refuse(['--kind', 'secret', '--expires', '3651d'], /--expires must be from 1s to 3650d, not "3651d"/);
});
