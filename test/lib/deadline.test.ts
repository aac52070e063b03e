import t from 'tap';
import { withTimeout } from '../../src/lib/concurrency/deadline.ts';

const never = new Promise<never>(() => {});
const fail = (): never => {
  throw new Error('late');
};

t.test('work that ends in time gives its own outcome', async (t) => {
  t.equal(await withTimeout(60_000, Promise.resolve('done'), fail), 'done');
  await t.rejects(withTimeout(60_000, Promise.reject(new Error('failed')), fail), { message: 'failed' });
});

t.test('work that takes too long gives the result or the error of late', async (t) => {
  t.equal(await withTimeout(1, never, () => 'late'), 'late');
  await t.rejects(withTimeout(1, never, fail), { message: 'late' });
});

t.test('an error after the deadline is dropped', async (t) => {
  let reject: (error: Error) => void = () => {};
  const work = new Promise<never>((_, refuse) => (reject = refuse));
  t.equal(await withTimeout(1, work, () => 'late'), 'late');
  reject(new Error('after the deadline'));
  // An unhandled rejection would fail the test now.
  await new Promise(setImmediate);
});
