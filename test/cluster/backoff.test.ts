import t from 'tap';
import { Backoff } from '../../src/cluster/backoff.ts';
import { ManualClock } from '../doubles/manual-clock.ts';

t.test(
  'the first replacement is immediate, then delays double from 100 ms to 30 s, and reset after a life of 60 s',
  (t) => {
    const clock = new ManualClock(0);
    const backoff = new Backoff(clock);
    const waits = Array.from({ length: 12 }, () => {
      backoff.started();
      clock.advance(59_999);
      return backoff.ended();
    });
    t.same(waits, [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
    backoff.started();
    clock.advance(60_000);
    t.equal(backoff.ended(), 0);
    t.end();
  },
);
