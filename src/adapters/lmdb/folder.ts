import { randomBytes } from 'node:crypto';
import { type Database, treeKey } from './database.ts';
import { asBinary } from 'lmdb';
import type { Slice } from './batch.ts';
import type { Slot } from './overlay.ts';
import type { Replica } from './replica.ts';

/** Writes of one transaction of the fold: short enough that commits hardly wait for it (some milliseconds). */
const SLICE = 1_000;

/**
 * Moves what the log says into the tree. Many commits become few pages, because records of one thread lie side by
 * side: that is what makes the commit itself cheap.
 *
 * Safe to stop at any moment: until its last step the log has everything still, and every process reads the log over
 * the tree. Only one process can finish: each step checks that no other began meanwhile.
 */
export async function fold(database: Database, replica: Replica): Promise<void> {
  replica.renew();
  const from = replica.folded;
  const to = replica.head;
  if (to === from) return;
  const token = randomBytes(8).toString('hex');
  const mine = (): boolean => database.meta.get('folder') === token && Number(database.meta.get('folded') ?? 0) === from;

  await database.root.transaction(() => void database.meta.put('folder', token));
  const changes = changesBetween(replica, from, to);
  for (let i = 0; i < changes.length; i += SLICE) {
    const part = changes.slice(i, i + SLICE);
    const written = await database.root.transaction(() => {
      if (!mine()) return false;
      for (const [key, slot] of part) {
        if (slot.slice === undefined) void database.tree.remove(key);
        else void database.tree.put(key, bytesOf(slot.slice));
      }
      return true;
    });
    if (!written) return;
  }
  await database.root.transaction(() => {
    if (!mine()) return;
    replica.events.fold(to);
    void database.meta.put('folded', String(to));
  });
  replica.renew();
}

/** In the order of the tree, so that each of its pages is written once. */
function changesBetween(replica: Replica, from: number, to: number): [key: string, slot: Slot][] {
  const changes: [string, Slot][] = [];
  for (const [partition, key, slot] of replica.overlay.all()) {
    if (slot.position > from && slot.position <= to) changes.push([treeKey(partition, key), slot]);
  }
  return changes;
}

/** The text as the tree would encode it, without making a string of it in between. */
function bytesOf({ bytes, start, end }: Slice): string {
  return asBinary(bytes.subarray(start, end)) as unknown as string;
}
