import { hash } from 'node:crypto';
import t from 'tap';
import {
  createEnvironment,
  deleteEnvironment,
  environmentById,
  findEnvironment,
  listEnvironments,
  updateEnvironment,
} from '../../src/domain/environments/environments.ts';
import {
  authenticatePublishableKey,
  authenticateSecretKey,
  createKey,
  listKeys,
  revokeKey,
  rotateKey,
} from '../../src/domain/access/keys.ts';
import { listThreads } from '../../src/domain/comments/threads.ts';
import type { Context } from '../../src/domain/context.ts';
import { createWorld, itemsOf, query, START, startThread } from './world.ts';
import { streamOf } from '../../src/domain/events/streams.ts';

const invalid = { code: 'invalid_key', message: 'Invalid API key' };

await t.test('an environment is found by id and slug, and slugs are unique', async (t) => {
  const { ctx, peer, environment } = await createWorld(t);
  t.match(environment, {
    slug: 'dev',
    name: 'dev',
    disabled: false,
    settings: { requireKnownUsers: true, maxFileSizeMb: 10 },
  });
  t.same(await environmentById(ctx, environment.id), environment);
  t.same(await findEnvironment(peer, 'dev'), environment);
  t.same(await findEnvironment(ctx, environment.id), environment);
  for (const name of ['prod', '', 'a b', 'x'.repeat(300)])
    await t.rejects(findEnvironment(ctx, name), { code: 'environment_not_found' });
  const racing = await Promise.allSettled(
    [ctx, peer, ctx].map((worker) => createEnvironment(worker, { slug: 'prod', name: 'Production' })),
  );
  t.equal(racing.filter(({ status }) => status === 'fulfilled').length, 1);
  await t.rejects(createEnvironment(ctx, { slug: 'prod' }), {
    code: 'slug_taken',
    message: 'The slug prod is taken by another environment',
  });
  for (const slug of ['', 'A', '-a', 'a-', 'a_b', 'x'.repeat(64)])
    await t.rejects(createEnvironment(ctx, { slug }), { code: 'invalid_request', message: /^slug must be/ });
  t.same(
    (await listEnvironments(ctx)).map(({ slug }) => slug),
    ['dev', 'prod'],
  );
});

await t.test('an update changes the given fields, immediately and on every worker', async (t) => {
  const { ctx, peer, environment, clock } = await createWorld(t);
  await environmentById(peer, environment.id);
  clock.advance(5);
  const updated = await updateEnvironment(ctx, environment.id, {
    name: 'Dev',
    settings: {
      media: { video: false },
      limits: { bodyLength: 5 },
      allowedOrigins: ['https://a.example'],
      jwtIssuer: 'me',
    },
  });
  t.match(updated, {
    name: 'Dev',
    settings: {
      media: { image: true, video: false },
      limits: { bodyLength: 5 },
      jwtIssuer: 'me',
      requireKnownUsers: true,
    },
  });
  t.same(await environmentById(peer, environment.id), updated);
  t.match(await updateEnvironment(ctx, environment.id, { settings: { jwtIssuer: null, limits: { mentions: 1 } } }), {
    settings: { jwtIssuer: null, limits: { bodyLength: 5, mentions: 1 } },
  });
  const cases: [object, RegExp][] = [
    [{ settings: { maxFileSizeMb: 0 } }, /^settings\.maxFileSizeMb must be between 1 and 10240(?:, not .+)?$/],
    [{ settings: { allowedOrigins: ['https://a.example/path'] } }, /^settings\.allowedOrigins must hold origins/],
    [
      { settings: { limits: { idLength: 129 } } },
      /^settings\.limits\.idLength must be between 1 and 128(?:, not .+)?$/,
    ],
    [{ disabled: 'yes' }, /^disabled must be a boolean(?:, not .+)?$/],
  ];
  for (const [patch, message] of cases)
    await t.rejects(updateEnvironment(ctx, environment.id, patch), { code: 'invalid_request', message });
  await t.rejects(updateEnvironment(ctx, 'env_none', {}), { code: 'environment_not_found' });
});

await t.test(
  'a key authenticates until it is revoked, which applies to the next request in every worker',
  async (t) => {
    const { ctx, peer, environment } = await createWorld(t);
    const { key, value } = await createKey(ctx, environment, {
      kind: 'secret',
      name: 'ci',
      scope: 'moderate',
      rooms: 'a/*',
      rateLimit: 500,
    });
    t.match(value, /^sk_dev_[0-9A-Za-z]{43}$/);
    t.match(key, {
      kind: 'secret',
      name: 'ci',
      environmentId: environment.id,
      expiresAt: null,
      revokedAt: null,
      preview: `${value.slice(0, 11)}…`,
    });
    t.notOk('hash' in key);
    for (const worker of [ctx, peer]) {
      const holder = await authenticateSecretKey(worker, value, 'rest');
      t.match(holder, {
        actor: { kind: 'backend', keyId: key.id, scope: 'moderate', rooms: ['a/*'], via: 'rest' },
        rateLimit: 500,
      });
      t.equal(await authenticateSecretKey(worker, value, 'rest'), holder, 'remembered');
    }
    t.match(await revokeKey(peer, key.id), { revokedAt: new Date(START).toISOString() });
    for (const worker of [ctx, peer])
      await t.rejects(async () => authenticateSecretKey(worker, value, 'rest'), invalid);
    await t.resolves(revokeKey(ctx, key.id), 'revoking again');
    t.same(
      (await listKeys(ctx, environment)).map(({ id, revokedAt }) => [id, revokedAt !== null]),
      [[key.id, true]],
    );
    await t.rejects(revokeKey(ctx, 'key_none'), { code: 'key_not_found' });
  },
);

await t.test('text that is not a key, and a key of the other kind, are refused', async (t) => {
  const { ctx, environment } = await createWorld(t);
  const secret = await createKey(ctx, environment, { kind: 'secret' });
  const publishable = await createKey(ctx, environment, { kind: 'publishable' });
  t.match(publishable.value, /^pk_dev_[0-9A-Za-z]{43}$/);
  t.same(await authenticatePublishableKey(ctx, publishable.value), environment);
  for (const value of [
    '',
    'sk_',
    'sk_dev_x',
    publishable.value,
    publishable.value.replace('pk', 'sk'),
    `sk_${'x'.repeat(10_000)}`,
  ]) {
    await t.rejects(async () => authenticateSecretKey(ctx, value, 'rest'), invalid);
  }
  for (const value of [secret.value, secret.value.replace('sk', 'pk')])
    await t.rejects(authenticatePublishableKey(ctx, value), invalid);
  const stored = await ctx.store.range(`e/${environment.id}/keys`);
  t.notOk(
    stored.some((entry) => entry.value.includes(secret.value)),
    'a secret key is not stored',
  );
  t.ok(stored.some((entry) => entry.value.includes(hash('sha256', secret.value, 'base64url'))));
});

await t.test('a key expires, and a rotated key works during its overlap', async (t) => {
  const { ctx, peer, environment, clock } = await createWorld(t);
  const works = async (worker: Context, value: string): Promise<boolean> => {
    try {
      await authenticateSecretKey(worker, value, 'rest');
      return true;
    } catch {
      return false;
    }
  };
  const old = await createKey(ctx, environment, { kind: 'secret', scope: 'read', expiresInSeconds: 3600 });
  clock.advance(1_000_000);
  t.ok(await works(peer, old.value));
  const fresh = await rotateKey(ctx, old.key.id, { overlapSeconds: 60 });
  t.match(fresh.key, { scope: 'read', expiresAt: new Date(START + 1_000_000 + 3_600_000).toISOString() });
  clock.advance(59_999);
  for (const worker of [ctx, peer]) t.ok((await works(worker, old.value)) && (await works(worker, fresh.value)));
  clock.advance(1);
  for (const worker of [ctx, peer]) t.ok(!(await works(worker, old.value)) && (await works(worker, fresh.value)));
  await t.rejects(rotateKey(ctx, old.key.id, { overlapSeconds: 0 }), {
    code: 'invalid_request',
    message: /revoked or expired/,
  });
  await t.rejects(rotateKey(ctx, fresh.key.id, { overlapSeconds: -1 }), {
    code: 'invalid_request',
    message: /^overlapSeconds must be between 0 and 315360000(?:, not .+)?$/,
  });
  clock.advance(3_600_000);
  t.notOk(await works(ctx, fresh.value));
  await t.rejects(createKey(ctx, environment, { kind: 'secret', expiresInSeconds: 0 }), { code: 'invalid_request' });
});

await t.test('a disabled environment refuses its keys, and accepts them once it is enabled again', async (t) => {
  const { ctx, peer, environment } = await createWorld(t);
  const { value } = await createKey(ctx, environment, { kind: 'secret' });
  await authenticateSecretKey(peer, value, 'rest');
  await updateEnvironment(ctx, environment.id, { disabled: true });
  await t.rejects(async () => authenticateSecretKey(peer, value, 'rest'), { code: 'environment_disabled' });
  await updateEnvironment(ctx, environment.id, { disabled: false });
  await t.resolves(async () => authenticateSecretKey(peer, value, 'rest'));
});

await t.test('a deleted environment leaves no records, and other environments do not change', async (t) => {
  const world = await createWorld(t);
  const { ctx, peer, environment } = world;
  const other = await createEnvironment(ctx, { slug: 'other' });
  const { value } = await createKey(ctx, environment, { kind: 'secret' });
  const kept = await createKey(ctx, other, { kind: 'secret' });
  await startThread(world);
  await authenticateSecretKey(peer, value, 'rest');
  await deleteEnvironment(ctx, environment.id);
  for (const worker of [ctx, peer]) {
    await t.rejects(async () => authenticateSecretKey(worker, value, 'rest'), invalid);
    await t.rejects(environmentById(worker, environment.id), { code: 'environment_not_found' });
    await t.rejects(findEnvironment(worker, 'dev'), { code: 'environment_not_found' });
    t.same(itemsOf(await listThreads(worker, world.backend, 'room', query('threads'))), []);
    await t.resolves(async () => authenticateSecretKey(worker, kept.value, 'rest'));
  }
  t.equal(await ctx.store.lastSeq(streamOf(environment)), 0);
  t.equal((await ctx.store.range('keyhash')).length, 1);
  await t.rejects(deleteEnvironment(ctx, environment.id), { code: 'environment_not_found' });
  await t.rejects(createKey(ctx, environment, { kind: 'secret' }), { code: 'environment_not_found' });
  await t.resolves(createEnvironment(ctx, { slug: 'dev' }), 'the slug is free again');
});
