import t from 'tap';
import { Spending } from '../../src/lib/spending.ts';

t.test('a key may spend its limit at once and gets it back over the window, others are not concerned', (t) => {
  let now = 1_000;
  const spending = new Spending(100, 60_000, 10, () => now);
  t.equal(spending.waitMs('a', 100), 0);
  spending.spend('a', 100);
  t.equal(spending.waitMs('b', 100), 0);
  t.equal(spending.waitMs('a', 1), 600);
  t.equal(spending.waitMs('a', 50), 30_000);
  now += 30_000;
  t.equal(spending.waitMs('a', 50), 0);
  spending.spend('a', 80);
  t.equal(spending.waitMs('a', 1), 31 * 600);
  now += 10_000_000;
  t.equal(spending.waitMs('a', 100), 0, 'no more than the limit is saved up');
  t.end();
});

t.test('more than the limit may be spent by whoever owes nothing', (t) => {
  let now = 0;
  const spending = new Spending(100, 60_000, 10, () => now);
  t.equal(spending.waitMs('a', 250), 0);
  spending.spend('a', 250);
  t.equal(spending.waitMs('a', 250), 150_000);
  now += 150_000;
  t.equal(spending.waitMs('a', 250), 0);
  t.end();
});

t.test('no limit is none, and accounts are bounded', (t) => {
  const free = new Spending(0, 60_000, 10, () => 0);
  free.spend('a', 1e9);
  t.equal(free.waitMs('a', 1e9), 0);
  const two = new Spending(100, 60_000, 2, () => 0);
  for (const key of ['a', 'b', 'a', 'c']) two.spend(key, 100);
  t.strictSame(['a', 'b', 'c'].map((key) => two.waitMs(key, 1) > 0), [true, false, true], 'the one that spent longest ago is forgotten');
  t.end();
});
