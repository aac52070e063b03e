import { setImmediate as nextIteration } from 'node:timers/promises';
import t from 'tap';
import type { Context } from '../../src/domain/context.ts';
import { clearState, digestOf, readState, writeState } from '../../src/domain/rooms/shared-state.ts';
import { deleteRoom } from '../../src/domain/rooms/room-removal.ts';
import { sweepStages } from '../../src/domain/rooms/state-bytes.ts';
import { exportEnvironment, exportHead } from '../../src/domain/transfer/export.ts';
import { Import } from '../../src/domain/transfer/import.ts';
import type { StoredEvent, Transaction } from '../../src/ports/store.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { createDiskPlace, type DiskPlace } from './disk-place.ts';

/** The largest bound of shared states. */
const LARGEST = { maxP2pStateMb: 100 };
const MEGABYTE = 1024 * 1024;
const HOUR = 3_600_000;
const always = (): boolean => true;

/**
 * Bytes in which chunks that are lost, doubled or in another order make a difference: no chunk is a multiple of the
 * pattern.
 */
function bytesOf(seed: number, length: number): Buffer {
  return Buffer.alloc(length, `the state ${seed}, `);
}

const put = ({ ctx, backend }: DiskPlace, bytes: Uint8Array, roomId = 'room') =>
  writeState(ctx, backend, roomId, bytes, false, always);

async function read({ ctx, backend }: DiskPlace, roomId = 'room'): Promise<Buffer | null> {
  const { base64 } = await readState(ctx, backend, roomId, null, always);
  return base64 === null ? null : Buffer.from(base64, 'base64');
}

async function events({ ctx, backend }: DiskPlace): Promise<StoredEvent[]> {
  return ctx.store.events(streamOf(backend.environment), 0, 1_000);
}

/** The number of records of chunks of states and of unfinished writes. */
async function chunkRecords({ ctx, backend }: DiskPlace): Promise<number> {
  let count = 0;
  for (const prefix of ['p2pchunks/', 'p2pstages']) {
    for (const partition of await ctx.store.partitions(`e/${backend.environment.id}/${prefix}`))
      count += (await ctx.store.range(partition)).length;
  }
  return count;
}

await t.test('a state of any size up to the bound of the environment is stored, replaced and cleared', async (t) => {
  const place = await createDiskPlace(t, LARGEST);
  for (const [i, length] of [16 * MEGABYTE, 10 * MEGABYTE + 1, 10 * MEGABYTE, 1].entries()) {
    const bytes = bytesOf(i, length);
    t.match(await put(place, bytes), { record: { version: i + 1, sizeBytes: length } });
    t.ok((await read(place))?.equals(bytes), `${length} bytes`);
    t.equal(
      await chunkRecords(place),
      length > 10 * MEGABYTE ? Math.ceil(length / (3 * MEGABYTE)) : 0,
      'nothing of the earlier state is left',
    );
    t.equal((await events(place)).length, i + 1, 'one event per write');
  }
  await t.rejects(put(place, Buffer.alloc(100 * MEGABYTE + 1)), {
    code: 'payload_too_large',
    message: 'State too large (max 100MB)',
  });
  for (const remove of [clearState, deleteRoom]) {
    await put(place, bytesOf(0, 11 * MEGABYTE));
    await remove(place.ctx, place.backend, 'room');
    t.equal(await read(place), null);
    t.equal(await chunkRecords(place), 0, remove.name);
  }
});

await t.test('a reader gets one whole state while a large one is replaced', async (t) => {
  const place = await createDiskPlace(t, LARGEST);
  const states = [0, 1].map((seed) => bytesOf(seed, 10 * MEGABYTE + 1 + seed));
  const digests = new Set(states.map(digestOf));
  await put(place, states[0] ?? Buffer.alloc(1));
  let done = false;
  const writing = (async () => {
    for (const state of states) await put(place, state);
    done = true;
  })();
  while (!done) {
    const bytes = await read(place);
    t.ok(bytes !== null && digests.has(digestOf(bytes)));
    // Commits need event loop iterations too.
    for (let i = 0; i < 25; i++) await nextIteration();
  }
  await writing;
});

await t.test('a write that is refused, and one whose server ended, leave no chunks', async (t) => {
  const place = await createDiskPlace(t, LARGEST);
  const { ctx, clock, backend } = place;
  await put(place, Buffer.from('kept'));
  const large = bytesOf(0, 12 * MEGABYTE);
  let calls = 0;
  await t.rejects(
    writeState(ctx, backend, 'room', large, false, () => ++calls === 1),
    { code: 'precondition_failed' },
    'changed while the chunks were written',
  );
  t.equal(await chunkRecords(place), 0);
  t.equal((await read(place))?.toString(), 'kept');

  // Ends after the second chunk: later commits never happen.
  let left = 2;
  const transact = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
    left-- > 0 ? ctx.store.transact(work) : Promise.reject(new Error('ended'));
  const ending: Context = {
    ...ctx,
    store: Object.create(ctx.store, {
      transact: { value: transact },
      get: { value: ctx.store.get.bind(ctx.store) },
    }) as Context['store'],
  };
  await t.rejects(writeState(ending, backend, 'room', large, false, always), { message: 'ended' });
  t.equal(await chunkRecords(place), 3);
  await sweepStages(ctx, backend.environment.id);
  t.equal(await chunkRecords(place), 3, 'it may still be running');
  clock.advance(HOUR + 1);
  await sweepStages(ctx, backend.environment.id);
  t.equal(await chunkRecords(place), 0);
  t.equal((await read(place))?.toString(), 'kept');
});

await t.test('a large state that an earlier version stored as one value is read and replaced', async (t) => {
  const place = await createDiskPlace(t, LARGEST);
  const { ctx, backend } = place;
  const old = bytesOf(1, 11 * MEGABYTE);
  await put(place, Buffer.from('x'));
  await ctx.store.transact(async (tx) => {
    const partition = `e/${backend.environment.id}/p2p/room`;
    const record = JSON.parse((await tx.get(partition, 'record')) ?? '{}') as object;
    tx.put(partition, 'record', JSON.stringify({ ...record, sizeBytes: old.length, digest: digestOf(old) }));
    tx.put(partition, 'bytes', old.toString('base64'));
  });
  t.ok((await read(place))?.equals(old));
  const next = bytesOf(2, 12 * MEGABYTE);
  await put(place, next);
  t.ok((await read(place))?.equals(next));
});

await t.test('large states are exported and imported', async (t) => {
  const place = await createDiskPlace(t, LARGEST);
  const [large, whole] = [bytesOf(0, 13 * MEGABYTE), bytesOf(1, 10 * MEGABYTE)];
  await put(place, large);
  await put(place, whole, 'other');
  const target = await createDiskPlace(t, LARGEST);
  const work = new Import(target.ctx, { skipExisting: false });
  const { environment } = place.backend;
  const renamed = { ...environment, slug: 'copy' };
  await work.add(exportHead());
  for await (const line of exportEnvironment(place.ctx, renamed, { withSecrets: true, onMissing: () => t.fail() }))
    await work.add(line);
  work.finish();
  const copy: DiskPlace = { ...target, backend: { ...target.backend, environment: renamed } };
  t.ok((await read(copy))?.equals(large));
  t.ok((await read(copy, 'other'))?.equals(whole));
  t.equal(await chunkRecords(copy), 5, 'of which none counts as unfinished');
});
