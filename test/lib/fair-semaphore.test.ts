import t from 'tap';
import { FairSemaphore } from '../../src/lib/concurrency/fair-semaphore.ts';

t.test('keys are served round robin, each in its own order, within the limit', async (t) => {
  const semaphore = new FairSemaphore(1);
  const order: string[] = [];
  let running = 0;
  const work = (name: string) => async (): Promise<string> => {
    running += 1;
    t.equal(running, 1);
    await Promise.resolve();
    order.push(name);
    running -= 1;
    return name;
  };
  const flood = ['a1', 'a2', 'a3', 'a4'].map((name) => semaphore.run('a', work(name)));
  const others = ['b1', 'c1', 'b2'].map((name) => semaphore.run(name.slice(0, 1), work(name)));
  t.strictSame(await Promise.all([...flood, ...others]), ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2']);
  t.strictSame(order, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  t.equal(await semaphore.run('a', work('a5')), 'a5', 'an idle semaphore runs work at once');
});

t.test('work that throws frees its place', async (t) => {
  const semaphore = new FairSemaphore(2);
  const failing = ['a', 'a', 'a', 'b'].map((key) => semaphore.run(key, () => Promise.reject(new Error(key))));
  for (const one of failing) await t.rejects(one, { message: /^[ab]$/ });
  t.equal(await semaphore.run('a', () => Promise.resolve(1)), 1);
});
