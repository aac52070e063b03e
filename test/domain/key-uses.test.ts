import t from 'tap';
import type { Context } from '../../src/domain/context.ts';
import { deleteEnvironment } from '../../src/domain/environments/environments.ts';
import { lastUses, writeKeyUses } from '../../src/domain/access/key-uses.ts';
import {
  authenticatePublishableKey,
  authenticateSecretKey,
  createKey,
  listKeys,
} from '../../src/domain/access/keys.ts';
import { keyUsesOf } from '../../src/domain/records/partitions.ts';
import { createWorld, START } from './world.ts';

const MINUTE = 60_000;
const iso = (ms: number): string => new Date(ms).toISOString();

await t.test('the last use of a key is written at most once a minute, over all workers', async (t) => {
  const { ctx, peer, environment, clock } = await createWorld(t);
  const { key, value } = await createKey(ctx, environment, { kind: 'secret' });
  const lastUse = async (): Promise<string | null | undefined> =>
    (await listKeys(peer, environment)).find(({ id }) => id === key.id)?.lastUsedAt;
  const use = async (worker: Context): Promise<void> => {
    await authenticateSecretKey(worker, value, 'rest');
    await writeKeyUses(worker);
  };
  t.equal(await lastUse(), null);
  await authenticateSecretKey(ctx, value, 'rest');
  t.equal(await lastUse(), null, 'no request writes it');
  await writeKeyUses(ctx);
  t.equal(await lastUse(), iso(START));
  clock.advance(MINUTE - 1);
  await use(ctx);
  await use(peer);
  t.equal(await lastUse(), iso(START));
  clock.advance(1);
  await use(peer);
  t.equal(await lastUse(), iso(START + MINUTE));
  clock.advance(MINUTE / 2);
  await use(ctx);
  t.equal(await lastUse(), iso(START + MINUTE), 'the other worker wrote half a minute ago');
});

await t.test('uses of publishable keys are recorded too, uses of refused keys are not', async (t) => {
  const { ctx, environment, clock } = await createWorld(t);
  const page = await createKey(ctx, environment, { kind: 'publishable' });
  const short = await createKey(ctx, environment, { kind: 'secret', expiresInSeconds: 1 });
  await authenticatePublishableKey(ctx, page.value);
  clock.advance(1_000);
  await t.rejects(async () => authenticateSecretKey(ctx, short.value, 'rest'), { code: 'invalid_key' });
  await writeKeyUses(ctx);
  t.strictSame([...(await lastUses(ctx, environment.id))], [[page.key.id, iso(START)]]);
});

await t.test('no key use is written for a deleted environment', async (t) => {
  const { ctx, peer, environment } = await createWorld(t);
  const { value } = await createKey(ctx, environment, { kind: 'secret' });
  await authenticateSecretKey(ctx, value, 'rest');
  await deleteEnvironment(peer, environment.id);
  await writeKeyUses(ctx);
  t.strictSame(await ctx.store.range(keyUsesOf(environment.id)), []);
});
