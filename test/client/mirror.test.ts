import t from 'tap';
import { CollabError } from '../../src/client/errors.ts';
import type { RoomComment, RoomSnapshot } from '../../src/client/room/snapshot.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { Thread } from '../../src/model/thread.ts';
import { Random } from '../fuzz/random.ts';
import { CuttableSockets, openSession, snapshotOf, stateOf } from '../helpers/session.ts';
import { startService } from '../helpers/service.ts';
import { done } from '../helpers/writer.ts';

// The snapshot of a room must equal what REST returns, whatever happened in between. The same operations again, or
// more: MIRROR_OPERATIONS=100000 MIRROR_SEED=7 npm test -- --timeout 86400 test/client/mirror.test.ts

const OPERATIONS = Number(process.env['MIRROR_OPERATIONS'] ?? 1_500);
const SEED = Number(process.env['MIRROR_SEED'] ?? Date.now() % 1_000_000);

type Listed = Thread & { comments: Comment[] };

/** The threads of a snapshot as the server would list them. */
function asServer({ threads }: RoomSnapshot): Listed[] {
  return threads.map((shown) => {
    const { pending: _hidden, ...thread } = shown;
    return { ...thread, comments: shown.comments.map(asComment) };
  });
}

function asComment(shown: RoomComment): Comment {
  const { pending: _hidden, ...comment } = shown;
  return comment;
}

t.test(
  `a snapshot equals REST after ${OPERATIONS} random operations with lost connections (seed ${SEED})`,
  async (t) => {
    const service = await startService(t, {
      workers: 2,
      flags: { 'ws.messagesPerSecond': '1000', 'ws.messageBurst': '10000' },
    });
    const tenant = await service.tenant('mirror', { quotas: { userWritesPerMinute: null } });
    const random = new Random(SEED);
    const below = (n: number): number => random.below(n);
    const sockets = new CuttableSockets();
    const ann = openSession(t, tenant, 'ann', { WebSocket: sockets.WebSocket });
    const bob = openSession(t, tenant, 'bob', { WebSocket: sockets.WebSocket, serverUrl: service.urls[1] });
    const rooms = [ann.room('page'), bob.room('page')] as const;
    await Promise.all(rooms.map((room) => room.ready()));
    for (const room of rooms) t.teardown(room.subscribe(() => {}));
    await tenant.request('PUT', '/users/bot', { body: { kind: 'bot' } });

    const waiting = new Set<Promise<unknown>>();
    const refused: string[] = [];
    const run = (work: Promise<unknown>): void => {
      const settled = work
        .catch((error: unknown) => {
          const code = error instanceof CollabError ? error.code : String(error);
          // Another writer was faster, which each of them must take.
          if (!/_not_found$|^forbidden$|^invalid_request$/.test(code)) refused.push(code);
        })
        .finally(() => waiting.delete(settled));
      waiting.add(settled);
    };

    for (let n = 0; n < OPERATIONS; n++) {
      // Often several changes in the same millisecond.
      if (random.chance(0.5)) service.clock.advance(below(20));
      const room = random.pick(rooms);
      const { threads } = room.getSnapshot();
      const thread = threads[below(threads.length)];
      const comment = thread?.comments[below(thread.comments.length)];
      const kind = below(100);
      if (kind < 12 || thread === undefined || comment === undefined)
        run(
          room.createThread({
            body: `thread ${n}`,
            ...(below(2) === 0 ? { position: { x: random.next(), y: random.next() } } : {}),
          }),
        );
      else if (kind < 45)
        run(room.createComment(thread.id, { body: `comment ${n}`, mentions: below(3) === 0 ? ['ann', 'bob'] : [] }));
      else if (kind < 55) run(room.updateComment(comment.id, { body: `edited ${n}` }));
      else if (kind < 65) run(room.deleteComment(comment.id));
      else if (kind < 72) run(room.setResolved(thread.id, below(2) === 0));
      else if (kind < 80) run(room.addReaction(comment.id, random.pick(['👍', '🎉', '❤️'])));
      else if (kind < 84 && comment.reactions[0] !== undefined) run(room.removeReaction(comment.reactions[0].id));
      else if (kind < 90)
        run(
          tenant.request('POST', `/threads/${thread.id}/comments`, {
            body: { userId: 'bot', body: `by rest ${n}` },
            worker: below(2),
          }),
        );
      else if (kind < 93)
        run(tenant.request('PATCH', `/threads/${thread.id}`, { body: { metadata: { n } }, worker: below(2) }));
      else if (kind < 95) run(tenant.request('DELETE', `/threads/${thread.id}`, { worker: below(2) }));
      else if (kind < 98) sockets.cut();
      else await Promise.all(waiting);
      if (waiting.size > 60) await Promise.race(waiting);
    }
    await Promise.all(waiting);
    t.strictSame(refused, [], 'nothing was refused but for what another writer had removed');

    const { threads: expected } = done(
      200,
      await tenant.request<{ threads: Listed[] }>('GET', '/rooms/page?include=comments'),
    );
    for (const [room, session] of [
      [rooms[0], ann],
      [rooms[1], bob],
    ] as const) {
      await stateOf(session, (state) => state.status === 'live');
      const same = (snapshot: RoomSnapshot): boolean => JSON.stringify(asServer(snapshot)) === JSON.stringify(expected);
      await snapshotOf(room, same).catch(() => t.strictSame(asServer(room.getSnapshot()), expected));
      t.ok(
        room
          .getSnapshot()
          .threads.every(
            (thread) => thread.pending === null && thread.comments.every(({ pending }) => pending === null),
          ),
        'nothing is pending',
      );
    }
    t.ok(
      sockets.opened > 2,
      `${sockets.opened} connections, ${expected.length} threads, ${expected.reduce((sum, { comments }) => sum + comments.length, 0)} comments`,
    );
  },
);
