import { setImmediate as nextIteration } from 'node:timers/promises';
import t from 'tap';
import { listRecords } from '../../src/domain/audit/audit.ts';
import type { Context } from '../../src/domain/context.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { threadKey } from '../../src/domain/records/partitions.ts';
import { deleteRoom, sweepRemovals } from '../../src/domain/rooms/room-removal.ts';
import { enterRoom, getRoom } from '../../src/domain/rooms/rooms.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import type { Transaction } from '../../src/ports/store.ts';
import { createDiskPlace, type DiskPlace } from './disk-place.ts';
import { START } from './world.ts';

const CREATED = new Date(START).toISOString();
const MINUTE = 60_000;

/** More than one commit can delete, which is a quarter of the ring: with that of a server 45 000. */
const THREADS = 12_000;
const BOUNDS = { ringRecords: 32_768 / 4 };

const idOf = (i: number): string => `th_${String(i).padStart(20, '0')}`;

/** Writes the records of a room with so many threads, of which every second one is resolved. */
async function fill({ ctx, backend }: DiskPlace, threads: number): Promise<void> {
  const { environment } = backend;
  await enterRoom(
    ctx,
    { kind: 'user', environment, userId: 'ann', role: 'member', rooms: null, confinedKeyId: null, via: 'rest' },
    'room',
  );
  const room = `e/${environment.id}/r/room`;
  for (let from = 0; from < threads; from += 5_000) {
    await ctx.store.transact(async (tx) => {
      for (let i = from; i < Math.min(threads, from + 5_000); i++) {
        const resolved = i % 2 === 1;
        tx.put(room, threadKey(CREATED, idOf(i)), idOf(i));
        tx.put(
          `e/${environment.id}/t/${idOf(i)}`,
          'thread',
          JSON.stringify({
            id: idOf(i),
            roomId: 'room',
            resolved,
            position: null,
            metadata: {},
            userId: 'ann',
            createdAt: CREATED,
            updatedAt: CREATED,
            resolvedAt: null,
            resolvedBy: null,
          }),
        );
      }
      tx.put(room, 'newest', idOf(threads - 1));
      tx.put(
        room,
        'stats',
        JSON.stringify({ threadCount: threads, openThreadCount: Math.ceil(threads / 2), lastActivityAt: CREATED }),
      );
    });
  }
}

async function deletedThreads({ ctx, backend }: DiskPlace): Promise<(string | undefined)[]> {
  const events = await ctx.store.events(streamOf(backend.environment), 0, 1_000_000);
  return events
    .map(({ text }) => JSON.parse(text) as EventEnvelope)
    .filter(({ type }) => type === 'thread.deleted')
    .map(({ threadId }) => threadId);
}

/** The numbers of threads and open threads of the room; null if it does not exist. */
async function counts({ ctx, backend }: DiskPlace): Promise<[threads: number, open: number] | null> {
  const stats = await ctx.store.get(`e/${backend.environment.id}/r/room`, 'stats');
  const room = await ctx.store.get(`e/${backend.environment.id}/r/room`, 'room');
  if (room === undefined || stats === undefined) return null;
  const { threadCount, openThreadCount } = JSON.parse(stats) as { threadCount: number; openThreadCount: number };
  return [threadCount, openThreadCount];
}

const acts = async ({ ctx, backend }: DiskPlace) =>
  (
    JSON.parse(await listRecords(ctx, backend.environment.id, 0, 100)) as {
      items: { action: string; actor: object; details: object }[];
    }
  ).items.filter(({ action }) => action === 'room.delete');

await t.test('a room with any number of threads is deleted, with one event per thread in their order', async (t) => {
  const place = await createDiskPlace(t, {}, BOUNDS);
  const { ctx, backend } = place;
  await fill(place, THREADS);
  const seen: number[] = [];
  let done = false;
  const deletion = deleteRoom(ctx, backend, 'room').finally(() => (done = true));
  while (!done) {
    const [threads, open] = (await counts(place)) ?? [0, 0];
    if (seen.at(-1) !== threads) seen.push(threads);
    if (open !== threads / 2) t.fail(`${threads} threads, of which ${open} are open`);
    await nextIteration();
  }
  t.equal(await deletion, '{"deleted":true}');
  t.strictSame(
    seen,
    [...new Set(seen)].toSorted((a, b) => b - a),
    'the room loses threads until it is gone, and never comes back',
  );
  await t.rejects(getRoom(ctx, backend, 'room', { includeComments: false }), { code: 'room_not_found' });
  t.strictSame(
    await deletedThreads(place),
    Array.from({ length: THREADS }, (_, i) => idOf(i)),
  );
  t.match(await acts(place), [{ actor: { kind: 'key', id: 'key_1' }, details: { threads: THREADS } }], 'it is one act');
});

await t.test(
  'the background worker completes a deletion whose server ended, in the name of who began it',
  async (t) => {
    const place = await createDiskPlace(t);
    const { ctx, clock, backend } = place;
    await fill(place, 5_000);
    let left = 1;
    const transact = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> =>
      left-- > 0 ? ctx.store.transact(work) : Promise.reject(new Error('ended'));
    const ending: Context = {
      ...ctx,
      store: Object.create(ctx.store, { transact: { value: transact } }) as Context['store'],
    };
    await t.rejects(deleteRoom(ending, backend, 'room'), { message: 'ended' });
    t.strictSame(await counts(place), [3_000, 1_500]);
    await sweepRemovals(ctx, backend.environment.id);
    t.strictSame(await counts(place), [3_000, 1_500], 'it may still be running');
    clock.advance(MINUTE + 1);
    await sweepRemovals(ctx, backend.environment.id);
    t.equal(await counts(place), null);
    t.strictSame(
      await deletedThreads(place),
      Array.from({ length: 5_000 }, (_, i) => idOf(i)),
    );
    t.match(await acts(place), [{ actor: { kind: 'key', id: 'key_1' }, details: { threads: 5_000 } }]);
    await sweepRemovals(ctx, backend.environment.id);
    t.equal((await ctx.store.range(`e/${backend.environment.id}/removals`)).length, 0);
    for (const kind of ['r/', 't/', 'rooms'])
      t.strictSame(
        (
          await Promise.all(
            (await ctx.store.partitions(`e/${backend.environment.id}/${kind}`)).map((name) => ctx.store.range(name)),
          )
        ).flat(),
        [],
        kind,
      );
  },
);

await t.test('two deletions of a large room at once delete it once', async (t) => {
  const place = await createDiskPlace(t);
  const { ctx, backend } = place;
  await fill(place, 5_000);
  const outcomes = await Promise.allSettled([deleteRoom(ctx, backend, 'room'), deleteRoom(ctx, backend, 'room')]);
  t.ok(outcomes.some(({ status }) => status === 'fulfilled'));
  t.equal(await counts(place), null);
  t.equal((await deletedThreads(place)).length, 5_000);
  t.equal((await acts(place)).length, 1);
});
