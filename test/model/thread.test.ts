import t from 'tap';
import { presentRoom } from '../../src/model/room.ts';
import { presentThread, type ThreadRecord } from '../../src/model/thread.ts';

const record: ThreadRecord = {
  id: 'th_1',
  roomId: 'room',
  resolved: false,
  position: { x: 0.25, y: 1, selector: '#a' },
  metadata: { a: 1 },
  userId: 'ann',
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.005Z',
  resolvedAt: null,
  resolvedBy: null,
};

await t.test('a thread shows its position and its coordinates', async (t) => {
  t.same(presentThread(record, { commentCount: 3, updatedAt: '2026-01-01T00:00:00.001Z' }), {
    id: 'th_1',
    roomId: 'room',
    resolved: false,
    positionX: 0.25,
    positionY: 1,
    position: { x: 0.25, y: 1, selector: '#a' },
    metadata: { a: 1 },
    commentCount: 3,
    userId: 'ann',
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.005Z',
    resolvedAt: null,
    resolvedBy: null,
  });
});

await t.test('without a position the coordinates are null, and later comments change updatedAt', async (t) => {
  const thread = presentThread(
    { ...record, position: null },
    { commentCount: 1, updatedAt: '2026-01-01T00:00:09.000Z' },
  );
  t.match(thread, { position: null, positionX: null, positionY: null, updatedAt: '2026-01-01T00:00:09.000Z' });
});

await t.test('a room has its id twice and the later of its update times', async (t) => {
  const room = {
    roomId: 'r',
    metadata: {},
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
  };
  const stats = { threadCount: 2, openThreadCount: 1, lastActivityAt: '2026-01-02T00:00:00.000Z' };
  t.same(Object.entries(presentRoom(room, stats)), [
    ['id', 'r'],
    ['roomId', 'r'],
    ['threadCount', 2],
    ['openThreadCount', 1],
    ['metadata', {}],
    ['createdAt', '2026-01-01T00:00:00.000Z'],
    ['updatedAt', '2026-01-02T00:00:00.000Z'],
    ['lastActivityAt', '2026-01-02T00:00:00.000Z'],
  ]);
});
