import { asBinary } from 'lmdb';
import { type CheckedValue, encodeValue } from '../env/checked-value.ts';
import { type Database, checkpointPosition, checkpointText, recordCheckpoint, tableKey } from '../env/database.ts';
import { recordGeneration } from '../env/log-file.ts';
import type { EncodedText } from './batch.ts';
import type { StoreView } from './store-view.ts';

/**
 * Writes the changes of the log to the base table and the event chunks. Many commits dirty few pages, because records
 * of one thread are adjacent: that is why a commit itself can be cheap.
 *
 * It is one transaction of the base table, so it is atomic, and the base table is always the store as of one position.
 * Commits continue meanwhile, because the log has a writers' lock of its own. If several processes start a checkpoint
 * at once, the first one does it and the others find it done.
 */
export async function checkpoint(database: Database, view: StoreView): Promise<void> {
  view.renew();
  if (view.checkpointed === view.head) return;
  await database.root.transaction(() => {
    const from = view.checkpointed;
    const to = view.head;
    if (checkpointPosition(checkpointText(database)) !== from) return;
    for (const [partition, key, encoded] of view.memtable.between(from, to)) {
      const name = tableKey(partition, key);
      if (encoded.end < encoded.start) void database.table.remove(name);
      else void database.table.put(name, valueOf(name, encoded));
    }
    view.events.checkpoint(from, to);
    recordCheckpoint(database, to);
    // A process that reloads from the base table must not continue in a log that ended before this position.
    recordGeneration(database, database.generation);
  });
  view.renew();
}

/** The value as the base table has it, without decoding its text to a string first. */
function valueOf(key: string, { bytes, start, end }: EncodedText): CheckedValue {
  return asBinary(encodeValue(key, bytes.subarray(start, end))) as unknown as CheckedValue;
}
