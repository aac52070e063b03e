import t from 'tap';
import { isDeeperThan } from '../../src/lib/json-depth.ts';

const nested = (levels: number, inside = ''): string => '['.repeat(levels) + inside + ']'.repeat(levels);

t.test('levels of arrays and objects are counted', async (t) => {
  t.notOk(isDeeperThan('1', 0));
  t.ok(isDeeperThan('{}', 0));
  t.notOk(isDeeperThan(nested(64), 64));
  t.ok(isDeeperThan(nested(65), 64));
  t.ok(isDeeperThan(`{"a":${nested(64)}}`, 64));
  t.notOk(isDeeperThan(`[${Array.from({ length: 1_000 }, () => '{"a":[]}').join(',')}]`, 3), 'siblings do not add up');
});

t.test('brackets in strings do not count, however the strings are escaped', async (t) => {
  for (const text of ['[[[', '"[[[', '\\"[[[', '\\\\', '\\', '{"a":[[[', 'é[[[\u2028']) {
    t.notOk(isDeeperThan(JSON.stringify([text, text]), 1), text);
    t.ok(isDeeperThan(JSON.stringify([text, [], text]), 1), text);
  }
});

t.test('text that is not JSON terminates too', async (t) => {
  for (const text of ['', '"', '"\\', '"\\"', ']]]', '["[']) t.notOk(isDeeperThan(text, 1), text);
});
