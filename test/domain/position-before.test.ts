import t from 'tap';
import { positionBefore } from '../../src/domain/events/position-before.ts';
import type { Store } from '../../src/ports/store.ts';

/** A stream whose event `n` has the time `timeOf(n)`; only what `positionBefore` reads. */
function streamOf(length: number, timeOf: (seq: number) => string): { store: Store; reads: () => number } {
  let reads = 0;
  const events: Store['events'] = async (_stream, since, limit) => {
    reads++;
    const count = Math.max(0, Math.min(limit, length - since));
    return Array.from({ length: count }, (_, i) => ({
      seq: since + i + 1,
      text: JSON.stringify({ at: timeOf(since + i + 1) }),
    }));
  };
  return { store: { lastSeq: async () => length, events } as unknown as Store, reads: () => reads };
}

const minute = (n: number): string => new Date(n * 60_000).toISOString();

t.test('the position is that of the last event before the time', async (t) => {
  const { store } = streamOf(1_000, minute);
  t.equal(await positionBefore(store, 's', minute(600)), 599);
  t.equal(await positionBefore(store, 's', minute(2_000)), 1_000, 'none since');
  t.equal(await positionBefore(store, 's', minute(1)), 0, 'all since');
  t.equal(await positionBefore(streamOf(0, minute).store, 's', minute(1)), 0, 'an empty stream');
});

t.test('a long stream without a new event costs one read', async (t) => {
  const { store, reads } = streamOf(1_000_000, minute);
  t.equal(await positionBefore(store, 's', minute(2_000_000)), 1_000_000);
  t.equal(reads(), 1);
});

t.test('a clock that was set back makes at most the last 10 000 events new', async (t) => {
  const { store, reads } = streamOf(1_000_000, minute);
  t.equal(await positionBefore(store, 's', minute(1)), 990_000);
  t.equal(reads(), 50);
});
