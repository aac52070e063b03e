import t from 'tap';
import { KeyedLock } from '../../src/lib/concurrency/keyed-lock.ts';

await t.test('work of one key runs one at a time and in order, also after a failure', async (t) => {
  const lock = new KeyedLock();
  const seen: string[] = [];
  const work =
    (name: string, fail = false) =>
    async (): Promise<string> => {
      seen.push(`+${name}`);
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(`-${name}`);
      if (fail) throw new Error(name);
      return name;
    };
  const results = await Promise.allSettled([
    lock.run('k', work('a')),
    lock.run('k', work('b', true)),
    lock.run('k', work('c')),
  ]);
  t.same(seen, ['+a', '-a', '+b', '-b', '+c', '-c']);
  t.same(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  seen.length = 0;
  await Promise.all([lock.run('x', work('x')), lock.run('y', work('y'))]);
  t.same(seen.slice(0, 2), ['+x', '+y'], 'other keys do not wait');
});
