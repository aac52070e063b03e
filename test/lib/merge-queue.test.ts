import t from 'tap';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { MergeQueue } from '../../src/lib/merge-queue.ts';
import { until } from '../helpers/cluster.ts';

type Batch = ReadonlyMap<string, number> | null;

t.test('values of one iteration are sent as one batch, with one merged value per key', async (t) => {
  const batches: Batch[] = [];
  const queue = new MergeQueue<number>((batch, sent) => (batches.push(batch), sent()), Math.max, 10);
  queue.add([['a', 1], ['b', 5]]);
  queue.add([['a', 3]]);
  await until(() => batches.length > 0);
  t.strictSame(batches, [new Map([['a', 3], ['b', 5]])]);
});

t.test('if too many keys wait, the batch says that any may have changed', async (t) => {
  const batches: Batch[] = [];
  const queue = new MergeQueue<number>((batch, sent) => (batches.push(batch), sent()), Math.max, 2);
  queue.add([['a', 1], ['b', 1], ['c', 1]]);
  await until(() => batches.length > 0);
  t.strictSame(batches, [null]);
});

t.test('values that come while a batch is being sent wait for the next one', async (t) => {
  const batches: Batch[] = [];
  let finish = (): void => {};
  const queue = new MergeQueue<number>((batch, sent) => (batches.push(batch), (finish = sent)), Math.max, 10);
  queue.add([['a', 1]]);
  await until(() => batches.length > 0);
  queue.add([['a', 2]]);
  await nextIteration();
  await nextIteration();
  t.equal(batches.length, 1);
  finish();
  await until(() => batches.length > 1);
  t.strictSame(batches[1], new Map([['a', 2]]));
});

t.test('with a pause, the first batch leaves at once, and the values of the pause as one batch after it', async (t) => {
  const pauseMs = 40;
  const times: number[] = [];
  let last = 0;
  const queue = new MergeQueue<number>((batch, sent) => (times.push(performance.now()), (last = batch?.get('a') ?? 0), sent()), Math.max, 10, pauseMs);
  queue.add([['a', 1]]);
  await until(() => times.length > 0);
  for (let value = 2; value <= 500; value++) {
    queue.add([['a', value]]);
    await nextIteration();
  }
  await until(() => last === 500);
  // Timers may fire up to a millisecond early.
  for (let i = 1; i < times.length; i++) t.ok(times[i]! - times[i - 1]! >= pauseMs - 1);
});
