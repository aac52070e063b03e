import { asBinary } from 'lmdb';
import { type Database, checkpointText, recordCheckpoint, tableKey } from '../env/database.ts';
import { recordGeneration } from '../env/log-file.ts';
import type { Slot } from './batch.ts';
import type { StoreView } from './store-view.ts';

/**
 * Writes the changes of the log to the base table and the event chunks. Many commits dirty few pages, because records of
 * one thread are adjacent: that is why a commit itself can be cheap.
 *
 * It is one transaction of the base table, so it is atomic, and the base table is always the store as of one position.
 * Commits continue meanwhile, because the log has a writers' lock of its own. If several processes start a checkpoint at
 * once, the first one does it and the others find it done.
 */
export async function checkpoint(database: Database, view: StoreView): Promise<void> {
  view.renew();
  if (view.checkpointed === view.head) return;
  await database.root.transaction(() => {
    const from = view.checkpointed;
    const to = view.head;
    if (Number(checkpointText(database) ?? 0) !== from) return;
    for (const [partition, key, slot] of view.memtable.all()) {
      if (slot.position <= from || slot.position > to) continue;
      if (slot.end < slot.start) void database.table.remove(tableKey(partition, key));
      else void database.table.put(tableKey(partition, key), bytesOf(slot));
    }
    view.events.checkpoint(from, to);
    recordCheckpoint(database, to);
    // A process that reloads from the base table must not continue in a log that ended before this position.
    recordGeneration(database, database.generation);
  });
  view.renew();
}

/** The text as the base table would encode it, without decoding it to a string first. */
function bytesOf({ bytes, start, end }: Slot): string {
  return asBinary(bytes.subarray(start, end)) as unknown as string;
}
