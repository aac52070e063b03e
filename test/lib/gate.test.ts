import t from 'tap';
import { Semaphore } from '../../src/lib/semaphore.ts';

await t.test('at most so many run at once, in the order they came', async (t) => {
  const gate = new Semaphore(2);
  const running = new Set<number>();
  const begun: number[] = [];
  let most = 0;
  const results = await Promise.all(
    [0, 1, 2, 3, 4].map((n) =>
      gate.run(async () => {
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

await t.test('work that fails makes room too', async (t) => {
  const gate = new Semaphore(1);
  const failed = gate.run(() => Promise.reject(new Error('broken')));
  const after = gate.run(() => Promise.resolve('fine'));
  await t.rejects(failed, { message: 'broken' });
  t.equal(await after, 'fine');
});
