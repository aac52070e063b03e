import { asBinary } from 'lmdb';
import { type Database, foldedText, treeKey } from './database.ts';
import { recordGeneration } from './log-file.ts';
import type { Slot } from './batch.ts';
import type { Replica } from './replica.ts';

/**
 * Moves what the log says into the tree. Many commits become few pages, because records of one thread lie side by
 * side: that is what makes the commit itself cheap.
 *
 * One transaction of the tree, so it is done whole or not at all, and the tree is always the store as it stood at one
 * position. Commits go on meanwhile: they write to the log, whose lock is another. Of several processes that fold at
 * once the first does it, and the others find it done.
 */
export async function fold(database: Database, replica: Replica): Promise<void> {
  replica.renew();
  if (replica.folded === replica.head) return;
  await database.root.transaction(() => {
    const from = replica.folded;
    const to = replica.head;
    if (Number(foldedText(database) ?? 0) !== from) return;
    for (const [partition, key, slot] of replica.overlay.all()) {
      if (slot.position <= from || slot.position > to) continue;
      if (slot.end < slot.start) void database.tree.remove(treeKey(partition, key));
      else void database.tree.put(treeKey(partition, key), bytesOf(slot));
    }
    replica.events.fold(from, to);
    void database.meta.put('folded', String(to));
    // A process that starts over from the tree must not look for the rest in a log that ended before this position.
    recordGeneration(database, database.generation);
  });
  replica.renew();
}

/** The text as the tree would encode it, without making a string of it in between. */
function bytesOf({ bytes, start, end }: Slot): string {
  return asBinary(bytes.subarray(start, end)) as unknown as string;
}
