import t from 'tap';
import { createComment } from '../../src/domain/comments/comments.ts';
import type { Page } from '../../src/domain/lists/list-query.ts';
import { MAX_PAGE_CHARS, type TextPage } from '../../src/domain/lists/paging.ts';
import { userOrderOf } from '../../src/domain/records/partitions.ts';
import { getRoom } from '../../src/domain/rooms/rooms.ts';
import { getThread, listThreads } from '../../src/domain/comments/threads.ts';
import { completeUserOrder } from '../../src/domain/users/user-order.ts';
import { deleteUser, listUsers, putUser } from '../../src/domain/users/users.ts';
import { CollabError } from '../../src/model/errors.ts';
import type { Store } from '../../src/ports/store.ts';
import { addComment, createWorld, itemsOf, query, startThread, type World } from './world.ts';

const LONG = 'x'.repeat(10_000);
const tooLong = (): CollabError => new CollabError('payload_too_large', 'too long');

/** Counts the reads of a store from now on. */
function countReads(store: Store): { chars: number; gets: number } {
  const reads = { chars: 0, gets: 0 };
  const [range, get] = [store.range.bind(store), store.get.bind(store)];
  store.range = async (partition, options) => {
    const entries = await range(partition, options);
    for (const { value } of entries) reads.chars += value.length;
    return entries;
  };
  store.get = async (partition, key) => {
    const value = await get(partition, key);
    reads.gets++;
    reads.chars += value?.length ?? 0;
    return value;
  };
  return reads;
}

async function longThread(world: World, roomId: string, comments: number): Promise<string> {
  const { threadId } = await startThread(world, roomId);
  for (let i = 1; i < comments; i++)
    await createComment(world.ctx, world.backend, threadId, { userId: 'ann', body: LONG }, null);
  return threadId;
}

await t.test('a thread that is too long is refused after reading little more than the bound, and once', async (t) => {
  const world = await createWorld(t);
  const threadId = await longThread(world, 'room', 1_000);
  const reads = countReads(world.ctx.store);
  for (let i = 0; i < 3; i++)
    await t.rejects(getThread(world.ctx, world.ann, threadId, { maxChars: 1_000_000, tooLong }), {
      message: 'too long',
    });
  t.ok(reads.chars < 3_500_000, `${reads.chars} characters read of 10 million`);
  await addComment(world, threadId);
  await t.rejects(getThread(world.ctx, world.ann, threadId, { maxChars: 1_000_000, tooLong }), { message: 'too long' });
  t.equal(
    (JSON.parse(await getThread(world.ctx, world.ann, threadId)) as { comments: unknown[] }).comments.length,
    1_001,
  );
});

await t.test('a room that is too long is refused after reading little more than the bound, and once', async (t) => {
  const world = await createWorld(t);
  for (let i = 0; i < 10; i++) await longThread(world, 'room', 100);
  const reads = countReads(world.ctx.store);
  const bound = { maxChars: 1_500_000, tooLong };
  for (let i = 0; i < 3; i++)
    await t.rejects(getRoom(world.ctx, world.ann, 'room', { includeComments: true, bound }), { message: 'too long' });
  t.ok(reads.chars < 3_500_000, `${reads.chars} characters read of 10 million`);
  const one = await getRoom(world.ctx, world.ann, 'room', {
    includeComments: true,
    bound,
    query: query('threads', 'limit=1'),
  });
  t.match(JSON.parse(one.text), { threads: [{ comments: Array }], nextCursor: String });
});

await t.test(
  'a room that is longer than a page continues with nextCursor; a thread that is longer than a page is refused',
  async (t) => {
    const world = await createWorld(t);
    const ids = new Set<string>();
    for (let i = 0; i < 10; i++) ids.add(await longThread(world, 'room', 200));
    const found: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const { text, nextCursor }: TextPage = await getRoom(world.ctx, world.backend, 'room', {
        includeComments: true,
        query: { ...query('threads'), cursor },
      });
      t.ok(text.length < MAX_PAGE_CHARS + 1_000);
      const { threads } = JSON.parse(text) as { threads: { id: string; comments: unknown[] }[] };
      t.ok(threads.every(({ comments }) => comments.length === 200));
      found.push(...threads.map(({ id }) => id));
      cursor = nextCursor;
      pages++;
    } while (cursor !== null);
    t.equal(pages, 2);
    t.strictSame([...found].sort(), [...ids].sort(), 'every thread once');

    await longThread(world, 'huge', 1_700);
    await t.rejects(getRoom(world.ctx, world.backend, 'huge', { includeComments: true }), {
      code: 'payload_too_large',
      message: /^The thread th_\w+ with its comments is longer than an answer may be \(16777216 characters\)/,
    });
    t.match(itemsOf(await listThreads(world.ctx, world.backend, 'huge', query('threads'))), [{ commentCount: 1_700 }]);
  },
);

await t.test('a page of users reads only that page, ordered by creation', async (t) => {
  const world = await createWorld(t);
  const { ctx, backend, clock, environment } = world;
  for (let i = 0; i < 300; i++) {
    clock.advance(1);
    await putUser(ctx, backend, `user ${i % 7} ${i}`, { name: `Name ${i}` });
  }
  await deleteUser(ctx, backend, 'user 4 4');
  clock.advance(1);
  await putUser(ctx, backend, 'user 4 4', {});
  const list = (search: string) => listUsers(ctx, backend, query('users', search));
  const idsOf = (page: Page) => itemsOf<{ id: string }>(page).map(({ id }) => id);
  const whole = idsOf(await list(''));
  t.equal(whole.length, 302);
  t.strictSame(whole.slice(0, 3), ['user 4 4', 'user 5 299', 'user 4 298'], 'who is made anew is new');

  const reads = countReads(ctx.store);
  const first = await list('limit=10');
  t.strictSame(idsOf(first), whole.slice(0, 10));
  t.strictSame(idsOf(await list(`limit=10&cursor=${first.nextCursor}`)), whole.slice(10, 20));
  t.ok(reads.gets <= 30 && reads.chars < 20_000, `${reads.gets} reads of ${reads.chars} characters`);

  // As in a store of an earlier version.
  const order = await ctx.store.range(userOrderOf(environment.id));
  await ctx.store.transact(async (tx) => {
    for (const { key } of order) tx.delete(userOrderOf(environment.id), key);
  });
  t.strictSame(idsOf(await list('')), whole);
  t.equal(await completeUserOrder(ctx, environment.id), 0, 'nobody is missing then');
});
