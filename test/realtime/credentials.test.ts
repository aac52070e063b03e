import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import { createKey, listKeys, revokeKey, rotateKey } from '../../src/domain/access/keys.ts';
import { addSigningKey, listSigningKeys, removeSigningKey } from '../../src/domain/access/signing-keys.ts';
import { createWorld, startWorker, type Worker, type World } from '../helpers/realtime.ts';
import { startService } from '../helpers/service.ts';
import type { Closing, Frame, TestSocket } from '../helpers/socket.ts';

const INVALID: Closing = { code: 4401, reason: 'invalid_token' };
const refusal = ({ type, error }: Frame): unknown => [type, error?.code];

function advance(world: World, worker: Worker, ms: number): void {
  world.clock.advance(ms);
  worker.realtime.tick();
}

/** A worker whose environment has two publishable keys. */
async function withKeys(t: Test) {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const [first] = await listKeys(world.ctx, world.environment);
  const other = await createKey(world.ctx, world.environment, { kind: 'publishable', expiresInSeconds: 60 });
  const token = await world.token({ userId: 'ann' });
  const open = async (key: string): Promise<TestSocket> => {
    const socket = worker.open({ headers: { 'X-Service-Key': key, 'X-Service-Token': token } });
    await socket.frame('welcome');
    return socket;
  };
  return {
    world,
    worker,
    open,
    first: { id: first?.id ?? '', value: world.key },
    other: { id: other.key.id, value: other.value },
  };
}

await t.test(
  'the next message with a revoked publishable key closes the socket; sockets of other keys stay',
  async (t) => {
    const { world, open, first, other } = await withKeys(t);
    for (const [type, data] of [
      ['room.get', { roomId: 'lobby' }],
      ['thread.create', { roomId: 'lobby', body: 'hi' }],
      ['cursor', { roomId: 'lobby', x: 0, y: 0 }],
      ['pong', {}],
    ] as const) {
      const { key, value } = await createKey(world.ctx, world.environment, { kind: 'publishable' });
      const socket = await open(value);
      t.equal((await socket.request('room.join', { roomId: 'lobby' })).type, 'ok');
      await revokeKey(world.ctx, key.id);
      t.strictSame(refusal(await socket.request(type, data)), ['error', 'invalid_key'], type);
      t.strictSame(await socket.closed, INVALID, type);
    }
    const [kept, keptToo] = await Promise.all([open(first.value), open(other.value)]);
    t.equal((await kept.request('thread.create', { roomId: 'lobby', body: 'hi' })).type, 'ok');
    await revokeKey(world.ctx, first.id);
    t.strictSame(refusal(await kept.request('thread.create', { roomId: 'lobby', body: 'hi' })), [
      'error',
      'invalid_key',
    ]);
    t.equal((await keptToo.request('thread.create', { roomId: 'lobby', body: 'hi' })).type, 'ok');
  },
);

await t.test('a socket that only listens is closed too', async (t) => {
  const { world, worker, open, first, other } = await withKeys(t);
  const [silent, kept] = await Promise.all([open(first.value), open(other.value)]);
  await revokeKey(world.ctx, first.id);
  advance(world, worker, 1_000);
  t.strictSame(await silent.closed, INVALID);
  t.equal((await kept.request('pong')).type, 'ok');
});

await t.test('a key that expires, by itself or after a rotation, closes its sockets', async (t) => {
  const { world, worker, open, first, other } = await withKeys(t);
  const [short, long, silent] = await Promise.all([open(other.value), open(first.value), open(other.value)]);
  advance(world, worker, 59_500);
  t.equal((await short.request('pong')).type, 'ok');
  world.clock.advance(500);
  // The check of a moment ago may still be reading, and then closes the socket before its message is answered.
  short.send({ type: 'pong', id: 1_000 });
  t.strictSame(refusal(await short.frame('error')), ['error', 'invalid_key']);
  t.strictSame(await short.closed, INVALID);
  advance(world, worker, 500);
  t.strictSame(await silent.closed, INVALID);
  const { value } = await rotateKey(world.ctx, first.id, { overlapSeconds: 10 });
  const rotated = await open(value);
  advance(world, worker, 10_000);
  t.strictSame(await long.closed, INVALID);
  t.equal((await rotated.request('pong')).type, 'ok');
});

await t.test('removing a signing key closes the sockets of its tokens, and no others', async (t) => {
  const world = await createWorld(t);
  const worker = await startWorker(t, world);
  const [old] = await listSigningKeys(world.ctx, world.environment);
  const kid = old?.kid ?? '';
  const before = await world.token({ userId: 'ann' });
  advance(world, worker, 1_000);
  await addSigningKey(world.ctx, world.environment, { kind: 'secret', kid: 'new' });
  const after = await world.token({ userId: 'ann' });
  const [talking, silent, refreshed, kept] = await Promise.all(
    [before, before, before, after].map((token) => worker.join(token)),
  );
  t.equal((await refreshed?.request('auth.refresh', { token: after }))?.type, 'ok');
  await removeSigningKey(world.ctx, world.environment, kid);
  // A new key with the same kid is another key.
  await addSigningKey(world.ctx, world.environment, { kind: 'secret', kid });
  t.strictSame(refusal((await talking?.request('thread.create', { roomId: 'lobby', body: 'hi' })) as Frame), [
    'error',
    'invalid_token',
  ]);
  t.strictSame(await talking?.closed, INVALID);
  advance(world, worker, 1_000);
  t.strictSame(await silent?.closed, INVALID);
  for (const socket of [refreshed, kept]) t.equal((await socket?.request('pong'))?.type, 'ok');
});

await t.test('a revocation takes effect on every worker, whichever process made it', async (t) => {
  const service = await startService(t, { workers: 2 });
  const tenant = await service.tenant('default');
  const bystander = await service.tenant('other');
  const sockets = await Promise.all([0, 0, 1, 1].map((worker) => tenant.join({ userId: 'ann' }, { worker })));
  const kept = await bystander.join({ userId: 'ann' }, { worker: 1 });
  const key = (await listKeys(service.ctx, tenant.environment)).find(({ kind }) => kind === 'publishable');
  // Like the command line: its own store, and no announcement to other processes.
  const store = await openLmdbStore({ path: join(service.dataDir, 'store'), minFreeBytes: 0 });
  t.teardown(() => store.close());
  await revokeKey({ ...service.ctx, store }, key?.id ?? '');
  for (const socket of [sockets[0], sockets[2]]) {
    t.strictSame(refusal((await socket?.request('thread.create', { roomId: 'lobby', body: 'hi' })) as Frame), [
      'error',
      'invalid_key',
    ]);
  }
  service.clock.advance(1_000);
  for (const socket of sockets) t.strictSame(await socket.closed, INVALID);
  t.equal((await kept.request('thread.create', { roomId: 'lobby', body: 'hi' })).type, 'ok');
});
