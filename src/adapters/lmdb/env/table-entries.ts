import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Database as Table } from 'lmdb';

/** Records read without a break for other work of the process. */
const BATCH = 5_000;

/**
 * The entries of a table in order. Lets other work of the process run after each batch, so commits in between may show.
 *
 * @param requireOpen throws if the table has been closed, which is called before each batch: LMDB would end the process
 */
export async function* entriesOf<V>(
  table: Table<V, string>,
  requireOpen: () => void = () => {},
): AsyncIterable<{ key: string; value: V }> {
  for (let after: string | undefined; ; await nextIteration()) {
    requireOpen();
    const from = after;
    const batch = [...table.getRange(from === undefined ? { limit: BATCH } : { start: from, limit: BATCH + 1 })].filter(
      ({ key }) => key !== from,
    );
    yield* batch;
    after = batch.at(-1)?.key;
    if (batch.length < BATCH) return;
  }
}
