import t from 'tap';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { MergeQueue } from '../../src/lib/concurrency/merge-queue.ts';
import { until } from '../helpers/cluster.ts';

type Batch = ReadonlyMap<string, number> | null;

t.test('values of one iteration are sent as one batch, with one merged value per key', async (t) => {
  const batches: Batch[] = [];
  const queue = new MergeQueue<number>((batch, sent) => (batches.push(batch), sent()), Math.max, 10);
  queue.add([
    ['a', 1],
    ['b', 5],
  ]);
  queue.add([['a', 3]]);
  await until(() => batches.length > 0);
  t.strictSame(batches, [
    new Map([
      ['a', 3],
      ['b', 5],
    ]),
  ]);
});

t.test('if too many keys wait, the batch says that any may have changed', async (t) => {
  const batches: Batch[] = [];
  const queue = new MergeQueue<number>((batch, sent) => (batches.push(batch), sent()), Math.max, 2);
  queue.add([
    ['a', 1],
    ['b', 1],
    ['c', 1],
  ]);
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
