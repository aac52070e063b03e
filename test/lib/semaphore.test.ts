import t from 'tap';
import { Semaphore } from '../../src/lib/concurrency/semaphore.ts';

await t.test('at most `limit` tasks run at once, in the order of the calls', async (t) => {
  const semaphore = new Semaphore(2);
  const running = new Set<number>();
  const begun: number[] = [];
  let most = 0;
  const results = await Promise.all(
    [0, 1, 2, 3, 4].map((n) =>
      semaphore.run(async () => {
        begun.push(n);
        running.add(n);
        most = Math.max(most, running.size);
        await new Promise((resolve) => setImmediate(resolve));
        running.delete(n);
        return n * 10;
      }),
    ),
  );
  t.strictSame(results, [0, 10, 20, 30, 40]);
  t.strictSame(begun, [0, 1, 2, 3, 4]);
  t.equal(most, 2);
});

await t.test('work that fails frees its place', async (t) => {
  const semaphore = new Semaphore(1);
  const failed = semaphore.run(() => Promise.reject(new Error('broken')));
  const after = semaphore.run(() => Promise.resolve('fine'));
  await t.rejects(failed, { message: 'broken' });
  t.equal(await after, 'fine');
});
