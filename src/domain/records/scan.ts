import { yieldToEventLoop } from '../../lib/concurrency/event-loop.ts';
import type { Entry, RangeOptions, Reader, Store } from '../../ports/store.ts';

/** Records per read: a long read would make the store's file grow by all concurrent writes. */
const SLICE = 500;

/**
 * The entries of a partition, in slices of `limit` entries, 500 by default; no slice is empty. `prefix` and `reverse`
 * are those of `Reader.range`. Each slice is current when it is read: entries may be put and deleted meanwhile. Other
 * requests get turns between the slices of a long scan.
 */
export async function* scanSlices(
  reader: Reader,
  partition: string,
  { prefix, reverse, limit = SLICE }: Omit<RangeOptions, 'after'> = {},
): AsyncIterable<readonly Entry[]> {
  for (let after: string | undefined; ;) {
    const slice = await reader.range(partition, { prefix, after, reverse, limit });
    if (slice.length > 0) yield slice;
    if (slice.length < limit) return;
    after = slice.at(-1)?.key;
    await yieldToEventLoop();
  }
}

/** The entries of a partition whose keys start with `prefix`, one by one, read as by `scanSlices`. */
export async function* scanEntries(reader: Reader, partition: string, prefix = ''): AsyncIterable<Entry> {
  for await (const slice of scanSlices(reader, partition, { prefix })) yield* slice;
}

/** The names of the partitions that start with `prefix`, read in slices. */
export async function* scanPartitions(store: Store, prefix: string): AsyncIterable<string> {
  for (let after: string | undefined; ;) {
    const slice = await store.partitions(prefix, { after, limit: SLICE });
    yield* slice;
    if (slice.length < SLICE) return;
    after = slice.at(-1);
  }
}
