import type { Entry, Store } from '../../ports/store.ts';

/** Records per read: a long read would make the store's file grow by all concurrent writes. */
const SLICE = 500;

/** The entries of a partition whose keys start with `prefix`, read in slices. Each slice is current when it is read. */
export async function* scanEntries(store: Store, partition: string, prefix = ''): AsyncIterable<Entry> {
  for (let after: string | undefined; ; ) {
    const slice = await store.range(partition, { prefix, after, limit: SLICE });
    yield* slice;
    if (slice.length < SLICE) return;
    after = slice.at(-1)?.key;
  }
}

/** The names of the partitions that start with `prefix`, read in slices. */
export async function* scanPartitions(store: Store, prefix: string): AsyncIterable<string> {
  for (let after: string | undefined; ; ) {
    const slice = await store.partitions(prefix, { after, limit: SLICE });
    yield* slice;
    if (slice.length < SLICE) return;
    after = slice.at(-1);
  }
}
