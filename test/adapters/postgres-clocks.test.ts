import fc from 'fast-check';
import t from 'tap';
import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import { openPostgresStore, type PostgresStore } from '../../src/adapters/postgres/store/store.ts';
import { createComment } from '../../src/domain/comments/comments.ts';
import { createThread } from '../../src/domain/comments/threads.ts';
import type { Context } from '../../src/domain/context.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { putUser } from '../../src/domain/users/users.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { Thread } from '../../src/model/thread.ts';
import { backendOf } from '../helpers/backend-of.ts';
import { skipWithout } from '../helpers/engines/instance.ts';
import { POSTGRES, startPostgres } from '../helpers/engines/postgres.ts';

const MINUTE = 60_000;

t.test('two nodes on one PostgreSQL, whose clocks differ', { skip: skipWithout(...POSTGRES) }, async (t) => {
  const postgres = await startPostgres(t);
  const open = (): Promise<PostgresStore> => openPostgresStore({ url: postgres.url, connections: 3, name: 'node' });
  const stores = [await open(), await open()] as const;
  t.teardown(() => Promise.all(stores.map((store) => store.close())));
  const ahead = [0, 0];
  const nodes = stores.map((store, i): Context => {
    const clock = { ...systemClock, now: () => Date.now() + (ahead[i] ?? 0) };
    return { store, shared: new MemoryShared(), clock };
  }) as [Context, Context];
  const environment = await createEnvironment(nodes[0], { slug: 'clocks' });
  const actor = backendOf(environment);
  await putUser(nodes[0], actor, 'ann', { name: 'Ann' });
  const newThread = async (node: Context, room: string): Promise<Thread> => {
    const { body } = await createThread(node, actor, room, { userId: 'ann', body: 'first' }, null);
    return (JSON.parse(body) as { thread: Thread }).thread;
  };
  const reply = async (node: Context, thread: string): Promise<Comment> => {
    const { body } = await createComment(node, actor, thread, { userId: 'ann', body: 'reply' }, null);
    return (JSON.parse(body) as { comment: Comment }).comment;
  };
  let rooms = 0;

  await t.test('what one writes is not earlier than what the other one has written before', async (t) => {
    const clocks = fc.integer({ min: -10 * MINUTE, max: 10 * MINUTE });
    const step = fc.record({ node: fc.constantFrom(0, 1), isThread: fc.boolean(), clock: fc.option(clocks) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 25 }), async (steps) => {
        const room = `room-${rooms++}`;
        const threads = [await newThread(nodes[0], room)];
        const replies: Comment[] = [];
        for (const { node: i, isThread, clock } of steps) {
          const node = nodes[i] ?? nodes[0];
          if (clock !== null) ahead[i] = clock;
          if (isThread) threads.push(await newThread(node, room));
          else replies.push(await reply(node, threads[0]?.id ?? ''));
        }
        for (const written of [threads, replies]) {
          const times = written.map(({ createdAt }) => createdAt);
          t.strictSame(times, times.toSorted());
        }
      }),
      { numRuns: 40 },
    );
  });
});
