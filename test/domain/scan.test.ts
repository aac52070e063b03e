import t from 'tap';
import { scanEntries, scanSlices } from '../../src/domain/records/scan.ts';
import type { Entry } from '../../src/ports/store.ts';
import { createWorld } from './world.ts';

const PARTITION = 'numbers';

async function slicesOf(slices: AsyncIterable<readonly Entry[]>): Promise<string[][]> {
  const found: string[][] = [];
  for await (const slice of slices) found.push(slice.map(({ key }) => key));
  return found;
}

await t.test('a partition is read in slices, without an empty one at the end', async (t) => {
  const { store } = (await createWorld(t)).ctx;
  t.strictSame(await slicesOf(scanSlices(store, PARTITION)), []);
  await store.transact((tx) =>
    Promise.resolve(['a1', 'a2', 'a3', 'a4', 'b1'].forEach((key) => tx.put(PARTITION, key, '1'))),
  );
  t.strictSame(await slicesOf(scanSlices(store, PARTITION, { prefix: 'a', limit: 2 })), [
    ['a1', 'a2'],
    ['a3', 'a4'],
  ]);
  t.strictSame(await slicesOf(scanSlices(store, PARTITION, { reverse: true, limit: 3 })), [
    ['b1', 'a4', 'a3'],
    ['a2', 'a1'],
  ]);
});

await t.test('entries that are deleted during the scan do not end it', async (t) => {
  const { store } = (await createWorld(t)).ctx;
  await store.transact((tx) => Promise.resolve(['a', 'b', 'c', 'd'].forEach((key) => tx.put(PARTITION, key, '1'))));
  const read: string[] = [];
  for await (const slice of scanSlices(store, PARTITION, { limit: 2 })) {
    read.push(...slice.map(({ key }) => key));
    await store.transact((tx) => Promise.resolve(slice.forEach(({ key }) => tx.delete(PARTITION, key))));
  }
  t.strictSame(read, ['a', 'b', 'c', 'd']);
  for await (const { key } of scanEntries(store, PARTITION)) t.fail(`${key} is left`);
});
