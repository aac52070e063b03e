import t from 'tap';
import { Board } from '../../../src/demo/page/board.ts';
import type { ListedThread, ServerEvent } from '../../../src/demo/page/protocol.ts';
import type { Comment } from '../../../src/model/comment.ts';
import type { EventType } from '../../../src/model/event.ts';
import type { Thread } from '../../../src/model/thread.ts';

function thread(id: string, createdAt = '2026-01-01T00:00:00.000Z'): Thread {
  return {
    id, roomId: 'demo', resolved: false, positionX: null, positionY: null, position: null, metadata: {}, commentCount: 1, userId: 'ann',
    createdAt, updatedAt: createdAt, resolvedAt: null, resolvedBy: null,
  };
}

function comment(id: string, threadId: string, body: string): Comment {
  return { id, threadId, userId: 'ann', body, mentions: [], attachments: [], reactions: [], metadata: {}, createdAt: '2026-01-01T00:00:00.000Z', editedAt: null };
}

function event(seq: number, type: EventType, threadId: string, data: unknown, roomId = 'demo'): ServerEvent {
  return { type, seq, eventId: `evt_${seq}`, at: '2026-01-01T00:00:00.000Z', roomId, threadId, actor: { userId: 'ann', via: 'rest' }, data };
}

function bodies(board: Board): Record<string, string[]> {
  return Object.fromEntries(board.threads.map((entry) => [entry.thread.id, entry.comments.map(({ body }) => body)]));
}

const history: ServerEvent[] = [
  event(1, 'thread.created', 't1', { thread: thread('t1'), comment: comment('c1', 't1', 'one') }),
  event(2, 'comment.created', 't1', comment('c2', 't1', 'two')),
  event(3, 'comment.updated', 't1', comment('c1', 't1', 'one, edited')),
  event(4, 'thread.resolved', 't1', { ...thread('t1'), resolved: true }),
  event(5, 'thread.created', 't2', { thread: thread('t2', '2026-01-02T00:00:00.000Z'), comment: comment('c3', 't2', 'three') }),
  event(6, 'comment.deleted', 't1', { commentId: 'c2', threadId: 't1', threadDeleted: false }),
  event(7, 'comment.deleted', 't2', { commentId: 'c3', threadId: 't2', threadDeleted: true }),
  event(8, 'thread.deleted', 't2', { threadId: 't2' }),
];

t.test('events build the board, newest thread first', (t) => {
  const board = new Board('demo');
  for (const step of history.slice(0, 5)) t.equal(board.apply(step), true, step.type);
  t.same(bodies(board), { t2: ['three'], t1: ['one, edited', 'two'] });
  t.same(board.threads.map((entry) => [entry.thread.id, entry.thread.resolved]), [['t2', false], ['t1', true]]);
  for (const step of history.slice(5)) t.equal(board.apply(step), true, step.type);
  t.same(bodies(board), { t1: ['one, edited'] });
  t.end();
});

t.test('a list that is newer than the first events ends up right', (t) => {
  const inOrder = new Board('demo');
  for (const step of history) inOrder.apply(step);
  const end: ListedThread[] = inOrder.threads.map((entry) => ({ ...entry.thread, comments: entry.comments }));
  for (let from = 0; from <= history.length; from++) {
    const board = new Board('demo');
    board.load(end);
    for (const step of history.slice(from)) board.apply(step);
    t.same(bodies(board), bodies(inOrder), `events from ${from + 1} on`);
    t.equal(board.threads[0]?.thread.resolved, true);
  }
  t.end();
});

t.test('other rooms and unknown threads change nothing', (t) => {
  const board = new Board('demo');
  t.equal(board.apply(event(1, 'thread.created', 't9', { thread: thread('t9'), comment: comment('c9', 't9', 'nine') }, 'other')), false);
  t.equal(board.apply(event(2, 'comment.created', 't9', comment('c9', 't9', 'nine'))), false);
  t.equal(board.apply(event(3, 'thread.deleted', 't9', { threadId: 't9' })), false);
  t.same(board.threads, []);
  t.end();
});
