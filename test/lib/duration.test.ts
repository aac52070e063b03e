import t from 'tap';
import { formatDuration, parseDuration } from '../../src/lib/duration.ts';

t.test('a duration is a whole number and a unit', async (t) => {
  for (const [text, seconds] of [
    ['45s', 45],
    ['30m', 1_800],
    ['1h', 3_600],
    ['90d', 7_776_000],
    [' 2d ', 172_800],
  ] as const) {
    t.equal(parseDuration(text), seconds);
  }
});

t.test('anything else is refused', async (t) => {
  for (const text of ['', '90', 'd', '0s', '-1h', '1.5h', '1h30m', '1w', '1 h', '99999999999d'])
    t.equal(parseDuration(text), undefined, text);
});

t.test('seconds are written in the largest unit that fits', async (t) => {
  for (const text of ['45s', '90m', '1h', '90d']) t.equal(formatDuration(parseDuration(text) ?? -1), text);
});
