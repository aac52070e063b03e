import t, { type Test } from 'tap';
import { MemoryShared } from '../../../src/adapters/memory/shared.ts';
import { MemoryStore } from '../../doubles/memory-store.ts';
import type { Context } from '../../../src/domain/context.ts';
import { timestamp } from '../../../src/lib/clock.ts';
import { ManualClock } from '../../doubles/manual-clock.ts';
import { newId } from '../../../src/lib/ids.ts';
import { renderEvent } from '../../../src/model/event.ts';
import { trimExpiredEvents } from '../../../src/workers/background/event-retention.ts';

const HOUR = 3_600_000;

async function log(t: Test, eventsPerHour: number, hours: number) {
  const clock = new ManualClock(Date.parse('2026-01-01T00:00:00.000Z'));
  const store = new MemoryStore();
  t.teardown(() => store.close());
  const ctx: Context = { store, shared: new MemoryShared(), clock };
  for (let hour = 0; hour < hours; hour++) {
    await store.transact(async (tx) => {
      for (let i = 0; i < eventsPerHour; i++) {
        const draft = {
          type: 'user.updated',
          eventId: newId('evt_', clock.now()),
          at: timestamp(clock.now()),
          roomId: null,
          threadId: null,
          actor: { userId: null, via: 'rest' },
          data: '{}',
        } as const;
        tx.emit('env', (seq) => renderEvent(draft, seq));
      }
    });
    clock.advance(HOUR);
  }
  const retain = async (retentionHours: number, retentionCount: number): Promise<[oldest: number, last: number]> => {
    await trimExpiredEvents(ctx, 'env', { retentionHours, retentionCount });
    return [await store.oldestSeq('env'), await store.lastSeq('env')];
  };
  return { retain, store };
}

// 48 hours with 10 events each; now is one hour after the last.
t.test('events that are both too old and too many are deleted', async (t) => {
  const { retain } = await log(t, 10, 48);
  t.same(await retain(24, 100), [241, 480], 'those of the last 24 hours are kept, although more than 100');
});

t.test('a text that is no event does not keep the events before it for ever', async (t) => {
  const { retain, store } = await log(t, 10, 24);
  for (let n = 0; n < 200; n++) await store.transact(async (tx) => tx.emit('env', () => 'foreign'));
  t.same(await retain(0, 100), [341, 440]);
});

t.test('the latest events are kept however old they are', async (t) => {
  const { retain } = await log(t, 10, 48);
  t.same(await retain(1, 100), [381, 480]);
});

t.test('no event is deleted that either limit keeps', async (t) => {
  const { retain } = await log(t, 10, 48);
  t.same(await retain(48, 100), [1, 480]);
  t.same(await retain(1, 480), [1, 480]);
  t.same(await retain(1, 10_000), [1, 480]);
});

t.test('an empty stream is unchanged', async (t) => {
  const { retain } = await log(t, 0, 1);
  t.same(await retain(24, 10), [1, 0]);
});
