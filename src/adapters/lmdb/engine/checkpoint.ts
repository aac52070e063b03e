import { asBinary } from 'lmdb';
import { type Database, checkpointText, tableKey } from '../env/database.ts';
import { recordGeneration } from '../env/log-file.ts';
import type { Slot } from './batch.ts';
import type { StoreView } from './store-view.ts';

/**
 * Moves what the log says into the tree. Many commits become few pages, because records of one thread lie side by
 * side: that is what makes the commit itself cheap.
 *
 * One transaction of the tree, so it is done whole or not at all, and the tree is always the store as it stood at one
 * position. Commits go on meanwhile: they write to the log, whose lock is another. Of several processes that fold at
 * once the first does it, and the others find it done.
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
    view.events.fold(from, to);
    void database.meta.put('folded', String(to));
    // A process that starts over from the tree must not look for the rest in a log that ended before this position.
    recordGeneration(database, database.generation);
  });
  view.renew();
}

/** The text as the tree would encode it, without making a string of it in between. */
function bytesOf({ bytes, start, end }: Slot): string {
  return asBinary(bytes.subarray(start, end)) as unknown as string;
}
