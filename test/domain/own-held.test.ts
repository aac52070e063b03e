import t, { type Test } from 'tap';
import type { Actor } from '../../src/domain/access/actor.ts';
import { createComment, deleteComment, editComment } from '../../src/domain/comments/comments.ts';
import { createThread, deleteThread, getThread } from '../../src/domain/comments/threads.ts';
import type { Context } from '../../src/domain/context.ts';
import { listEvents } from '../../src/domain/events/events.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import { isVisibleTo, viewerOf } from '../../src/domain/events/visibility.ts';
import { approveItem, rejectItem } from '../../src/domain/moderation/decisions.ts';
import { listHeldOf, listItems } from '../../src/domain/moderation/items.ts';
import { moderationIndexOf } from '../../src/domain/records/partitions.ts';
import { getRoom } from '../../src/domain/rooms/rooms.ts';
import { deleteUser } from '../../src/domain/users/users.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { EventEnvelope } from '../../src/model/event.ts';
import type { ModerationItem } from '../../src/model/moderation.ts';
import type { Thread } from '../../src/model/thread.ts';
import { HELD_TEXT, holdingFilters } from '../helpers/holding-filters.ts';
import { createWorld, itemsOf, query, START, startThread, type World } from './world.ts';

type RoomAnswer = { room: { threadCount: number }; threads: (Thread & { comments: Comment[] })[] };

interface Stage {
  readonly world: World;
  readonly ctx: Context;
  readonly readers: Readonly<Record<'ann' | 'bob' | 'mod' | 'backend', Actor>>;
  /** Deterministic numbers from 0 to `below` - 1. */
  readonly random: (below: number) => number;
}

async function createStage(t: Test, seed = 1): Promise<Stage> {
  const world = await createWorld(t);
  const { ann, bob, backend } = world;
  let state = seed;
  const random = (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
  return {
    world,
    ctx: { ...world.ctx, filters: holdingFilters },
    readers: { ann, bob, mod: { ...bob, userId: 'mod', role: 'moderator' } as Actor, backend },
    random,
  };
}

const queue = async ({ ctx, readers }: Stage): Promise<ModerationItem[]> =>
  itemsOf<ModerationItem>(await listItems(ctx, readers.backend, query('moderation')));
const threadOf = async ({ ctx }: Stage, actor: Actor, threadId: string) =>
  JSON.parse(await getThread(ctx, actor, threadId)) as { thread: Thread; comments: Comment[] };
const roomOf = async ({ ctx }: Stage, actor: Actor, roomId = 'room', includeComments = true) =>
  JSON.parse((await getRoom(ctx, actor, roomId, { includeComments, emptyIfUnused: true })).text) as RoomAnswer;
const commentIn = (text: string): Comment => (JSON.parse(text) as { comment: Comment }).comment;

/** What a comment of ann is: the text that all see, and the one that she sees in its place. */
interface Known {
  readonly published: string | null;
  readonly held: string | null;
}

t.test('whatever is written, edited, withdrawn and decided, everybody reads what they may', async (t) => {
  for (const seed of [1, 2, 3]) {
    const stage = await createStage(t, seed);
    const { world, ctx, readers, random } = stage;
    const { threadId, commentId } = await startThread(world);
    const known = new Map<string, Known>([[commentId, { published: 'first', held: null }]]);
    const set = (id: string, change: Partial<Known>): void =>
      void known.set(id, { published: null, held: null, ...known.get(id), ...change });
    for (let step = 0; step < 60; step++) {
      world.clock.advance(random(3));
      const text = random(2) === 0 ? `${HELD_TEXT} ${step}` : `plain ${step}`;
      const isHeld = text.startsWith(HELD_TEXT);
      const ids = [...known.keys()].slice(1);
      const id = ids[random(ids.length)] ?? commentId;
      const before = known.get(id) as Known;
      const [author, backend] = [random(4) !== 0, readers.backend];
      switch (random(6)) {
        case 0: {
          const { body } = await createComment(
            ctx,
            author ? readers.ann : backend,
            threadId,
            { userId: 'ann', body: text },
            null,
          );
          set(commentIn(body).id, isHeld ? { held: text } : { published: text });
          break;
        }
        case 1:
        case 2: {
          await editComment(ctx, author ? readers.ann : backend, id, { body: text });
          if (before.published === null) set(id, { held: text });
          else set(id, isHeld ? { held: text } : { published: text, held: null });
          break;
        }
        case 3:
          if (id === commentId) break;
          await deleteComment(ctx, author ? readers.ann : backend, id);
          known.delete(id);
          break;
        default: {
          const item = (await queue(stage))[0];
          if (item === undefined) break;
          const { published, held } = known.get(item.commentId) as Known;
          if (random(2) === 0) {
            await approveItem(ctx, readers.mod, item.id, null);
            known.delete(item.commentId);
            set(item.commentId, { published: held });
          } else {
            await rejectItem(ctx, readers.mod, item.id, { reason: 'no' }, null);
            if (published === null) known.delete(item.commentId);
            else set(item.commentId, { held: null });
          }
        }
      }
      const all = [...known]
        .filter(([, { published }]) => published !== null)
        .map(([key, { published }]) => `${key} ${published}`)
        .sort();
      const own = [...known]
        .map(
          ([key, { published, held }]) =>
            `${key} ${held ?? published}${held === null ? '' : ' held'}${held === null || published === null ? '' : ` over ${published}`}`,
        )
        .sort();
      for (const [name, reader] of Object.entries(readers)) {
        const { thread, comments } = await threadOf(stage, reader, threadId);
        const seen = comments
          .map(
            ({ id: key, body, status, published }) =>
              `${key} ${body}${status === undefined ? '' : ` ${status}`}${published === undefined ? '' : ` over ${published.body}`}`,
          )
          .sort();
        if (JSON.stringify(seen) !== JSON.stringify(name === 'ann' ? own : all))
          t.strictSame(seen, name === 'ann' ? own : all, `seed ${seed}, step ${step}, ${name}`);
        if (thread.commentCount !== all.length)
          t.equal(thread.commentCount, all.length, `seed ${seed}, step ${step}: the count for ${name}`);
        const [listed] = (await roomOf(stage, reader)).threads;
        if (JSON.stringify(listed?.comments) !== JSON.stringify(comments))
          t.strictSame(listed?.comments, comments, `seed ${seed}, step ${step}: the room for ${name}`);
      }
      const waiting = [...known]
        .filter(([, { held }]) => held !== null)
        .map(([key, { held }]) => `${key} ${held}`)
        .sort();
      const queued = (await queue(stage)).map(({ commentId: key, comment }) => `${key} ${comment?.body}`).sort();
      if (JSON.stringify(queued) !== JSON.stringify(waiting))
        t.strictSame(queued, waiting, `seed ${seed}, step ${step}: the queue`);
    }
    t.pass(`seed ${seed}`);
    const events = await world.ctx.store.events(streamOf(world.environment), 0, 100_000);
    const heldEvents = events.filter(({ text }) => text.includes(HELD_TEXT) && text.startsWith('{"type":"moderation.'));
    const may = (actor: Actor): boolean[] => [
      ...new Set(heldEvents.map(({ text }) => isVisibleTo(viewerOf(actor), text, 'hidden'))),
    ];
    t.strictSame(
      [may(readers.ann), may(readers.bob), may(readers.mod), may(readers.backend)],
      [[true], [false], [true], [true]],
    );
    t.strictSame(
      [
        may({ ...world.backend, scope: 'read' }),
        may({ ...world.backend, scope: 'moderate', rooms: ['other'] }),
        may({ ...world.ann, rooms: ['other'] }),
      ],
      [[false], [false], [false]],
    );
  }
});

t.test('a held thread is read, edited and withdrawn by its author, and exists for nobody else', async (t) => {
  const stage = await createStage(t);
  const { ctx, readers, world } = stage;
  const create = async () =>
    (
      JSON.parse(
        (await createThread(ctx, readers.ann, 'fresh', { body: HELD_TEXT, metadata: { a: 1 } }, null)).body,
      ) as { thread: Thread & { comments: Comment[] } }
    ).thread;
  const held = await create();
  const [first] = held.comments;
  t.match(await threadOf(stage, readers.ann, held.id), {
    thread: { id: held.id, status: 'held', metadata: { a: 1 } },
    comments: [{ id: first?.id, body: HELD_TEXT, status: 'held' }],
  });
  t.match(await roomOf(stage, readers.ann, 'fresh'), {
    room: { threadCount: 0, createdAt: null },
    threads: [{ id: held.id, status: 'held', comments: [{ status: 'held' }] }],
  });
  t.match(await roomOf(stage, readers.ann, 'fresh', false), { threads: [{ id: held.id, comments: undefined }] });
  for (const reader of [readers.bob, readers.mod, readers.backend]) {
    await t.rejects(getThread(ctx, reader, held.id), { code: 'thread_not_found' });
    t.strictSame((await roomOf(stage, reader, 'fresh')).threads, []);
  }
  for (const other of [readers.bob, readers.mod]) {
    await t.rejects(editComment(ctx, other, first?.id ?? '', { body: 'x' }), { code: 'comment_not_found' });
    await t.rejects(deleteThread(ctx, other, held.id), { code: 'thread_not_found' });
  }
  await t.rejects(getThread(ctx, { ...world.ann, rooms: ['other'] }, held.id), { code: 'forbidden' });
  await t.rejects(deleteThread(ctx, { ...world.backend, rooms: ['other'] }, held.id), { code: 'forbidden' });
  await t.rejects(editComment(ctx, { ...world.backend, scope: 'read' }, first?.id ?? '', { body: 'x' }), {
    code: 'forbidden',
  });
  const [item] = await queue(stage);
  await editComment(ctx, readers.ann, first?.id ?? '', { body: 'better' });
  await t.rejects(
    approveItem(ctx, readers.mod, item?.id ?? '', null),
    { code: 'moderation_item_not_found' },
    'nobody approves a text that they have not seen',
  );
  await approveItem(ctx, readers.mod, (await queue(stage))[0]?.id ?? '', null);
  t.match(await threadOf(stage, readers.bob, held.id), {
    thread: { status: undefined },
    comments: [{ id: first?.id, body: 'better', editedAt: null, status: undefined }],
  });

  const [second, third] = [await create(), await create()];
  await deleteThread(ctx, readers.ann, second.id);
  await deleteComment(ctx, readers.backend, third.comments[0]?.id ?? '');
  t.strictSame([await queue(stage), (await roomOf(stage, readers.ann, 'fresh')).threads.length], [[], 1]);
});

t.test('an edit leaves what it does not name as its author last wrote it', async (t) => {
  const stage = await createStage(t);
  const { ctx, readers, world } = stage;
  const { threadId, commentId } = await startThread(world, 'room', { mentions: ['x'] });
  await editComment(ctx, readers.ann, commentId, { body: `${HELD_TEXT} 1`, mentions: ['bob'] });
  await editComment(ctx, readers.ann, commentId, { body: `${HELD_TEXT} 2` });
  t.match(await queue(stage), [{ comment: { body: `${HELD_TEXT} 2`, mentions: ['bob'] } }]);
  const [item] = await queue(stage);
  await editComment(ctx, readers.ann, commentId, { body: `${HELD_TEXT} 2` });
  t.equal((await queue(stage))[0]?.id, item?.id, 'an edit that changes nothing is no new item');
  t.match(
    commentIn(
      await editComment(
        {
          ...ctx,
          filters: {
            ...holdingFilters,
            run: () => Promise.resolve({ outcome: 'hold', plugin: 'p', reason: 'r', fields: {} }),
          },
        },
        readers.ann,
        commentId,
        { body: 'first', mentions: ['x'] },
      ),
    ),
    { body: 'first', status: undefined },
  );
  t.strictSame(await queue(stage), [], 'the published text withdraws the held edit');
  await editComment(ctx, readers.ann, commentId, { body: HELD_TEXT, mentions: ['bob'] });
  await editComment(ctx, readers.backend, commentId, { body: 'by the backend' });
  t.match(
    (await threadOf(stage, readers.ann, threadId)).comments,
    [{ body: 'by the backend', mentions: ['x'], status: undefined }],
    'others edit what is published',
  );
  const { items } = JSON.parse(
    Buffer.from((await listHeldOf(ctx, readers.ann, 'ann', query('moderation'))).text).toString(),
  ) as { items: object[] };
  t.strictSame(items, []);
});

t.test('a change of the metadata alone edits no held text, and takes none out of the queue', async (t) => {
  const stage = await createStage(t);
  const { ctx, readers, world } = stage;
  const { threadId, commentId } = await startThread(world);
  await editComment(ctx, readers.ann, commentId, { body: HELD_TEXT });
  await editComment(ctx, readers.backend, commentId, { metadata: { tag: 1 } });
  t.match(await threadOf(stage, readers.bob, threadId), {
    comments: [{ body: 'first', metadata: { tag: 1 }, editedAt: null }],
  });
  t.match(
    (await queue(stage)).map(({ comment }) => comment),
    [{ body: HELD_TEXT, metadata: { tag: 1 } }],
    'the held edit stays, with what is published meanwhile',
  );
  t.match(
    commentIn(await editComment(ctx, readers.ann, commentId, { metadata: { tag: 2 } })),
    { body: HELD_TEXT, status: 'held' },
    'its author changes the text that they see',
  );
  await approveItem(ctx, readers.backend, (await queue(stage))[0]?.id ?? '', null);
  t.match(await threadOf(stage, readers.bob, threadId), {
    comments: [{ body: HELD_TEXT, metadata: { tag: 2 }, editedAt: String }],
  });

  const second = commentIn((await createComment(ctx, readers.ann, threadId, { body: HELD_TEXT }, null)).body);
  t.strictSame(commentIn(await editComment(ctx, readers.ann, second.id, { metadata: { tag: 3 } })), {
    ...second,
    metadata: { tag: 3 },
  });

  const holdAll = {
    ...ctx,
    filters: {
      ...holdingFilters,
      run: () => Promise.resolve({ outcome: 'hold', plugin: 'p', reason: 'r', fields: {} } as const),
    },
  };
  const { threadId: other, commentId: plain } = await startThread(world);
  t.match(commentIn(await editComment(holdAll, readers.ann, plain, { metadata: { tag: 4 } })), {
    editedAt: null,
    status: 'held',
  });
  await approveItem(
    ctx,
    readers.backend,
    (await queue(stage)).find((item) => item.commentId === plain)?.id ?? '',
    null,
  );
  t.match(await threadOf(stage, readers.bob, other), {
    comments: [{ body: 'first', metadata: { tag: 4 }, editedAt: null }],
  });
});

t.test(
  'metadata that are held keep the held text of its author, and metadata that are published show it again',
  async (t) => {
    const stage = await createStage(t);
    const { ctx, readers, world } = stage;
    const { threadId, commentId } = await startThread(world);
    await editComment(ctx, readers.ann, commentId, { body: HELD_TEXT });
    const holdAll = {
      ...ctx,
      filters: {
        ...holdingFilters,
        run: () => Promise.resolve({ outcome: 'hold', plugin: 'p', reason: 'r', fields: {} } as const),
      },
    };
    await editComment(holdAll, readers.mod, commentId, { metadata: { tag: 1 } });
    t.match(
      (await queue(stage)).map(({ comment, keyId }) => ({ comment, keyId })),
      [{ comment: { body: HELD_TEXT, metadata: { tag: 1 } }, keyId: null }],
    );

    await editComment(ctx, readers.backend, commentId, { metadata: { tag: 2 } });
    const latest = (await world.ctx.store.events(streamOf(world.environment), 0, 1000))
      .slice(-2)
      .map(({ text }) => JSON.parse(text) as EventEnvelope);
    t.match(latest, [
      { type: 'comment.updated', data: { body: 'first', metadata: { tag: 2 } } },
      {
        type: 'moderation.held',
        data: {
          itemId: (await queue(stage))[0]?.id,
          comment: {
            body: HELD_TEXT,
            metadata: { tag: 2 },
            status: 'held',
            published: { body: 'first', metadata: { tag: 2 } },
          },
        },
      },
    ]);
    t.match(await threadOf(stage, readers.ann, threadId), { comments: [{ body: HELD_TEXT, status: 'held' }] });
  },
);

t.test('what a backend wrote for a user is published for that user', async (t) => {
  const stage = await createStage(t);
  const { ctx, readers, world } = stage;
  const { threadId, commentId } = await startThread(world);
  await editComment(ctx, readers.backend, commentId, { userId: 'bob', body: HELD_TEXT });
  await approveItem(ctx, readers.mod, (await queue(stage))[0]?.id ?? '', null);
  t.match((await world.events()).at(-1), {
    type: 'comment.updated',
    threadId,
    actor: { userId: 'bob' },
    data: { body: HELD_TEXT },
  });
});

t.test('reads of users without held content read nothing of the queue per request', async (t) => {
  const stage = await createStage(t);
  const { ctx, readers, world } = stage;
  const { threadId } = await startThread(world);
  const index = moderationIndexOf(world.environment.id);
  let reads = 0;
  const { store } = ctx;
  const get = store.get.bind(store);
  store.get = (partition, key) => {
    if (partition === index) reads++;
    return get(partition, key);
  };
  const count = async (actor: Actor): Promise<number> => {
    await getThread(ctx, actor, threadId);
    reads = 0;
    for (let i = 0; i < 5; i++) await getThread(ctx, actor, threadId);
    return reads;
  };
  t.equal(await count(readers.bob), 0, 'while nothing is held');
  await createComment(ctx, readers.ann, threadId, { body: HELD_TEXT }, null);
  t.strictSame([await count(readers.bob), await count(readers.ann)], [0, 0], 'and while something is');
});

t.test('the log keeps no held text of an erased user', async (t) => {
  const stage = await createStage(t);
  const { ctx, readers, world } = stage;
  const { threadId } = await startThread(world);
  await createComment(ctx, readers.ann, threadId, { body: HELD_TEXT }, null);
  world.clock.set(START + 1_000);
  await deleteUser(ctx, readers.backend, 'ann');
  const { items } = JSON.parse(await listEvents(ctx, readers.backend, 0, 100)) as { items: EventEnvelope[] };
  t.match(
    items.filter(({ type }) => type.startsWith('moderation.')),
    [
      { type: 'moderation.held', data: { userId: 'ann', comment: undefined } },
      { type: 'moderation.rejected', data: { cause: 'deleted' } },
    ],
  );
  t.notMatch(JSON.stringify(items), HELD_TEXT);
});
