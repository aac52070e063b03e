import { CollabError } from '../../model/errors.ts';
import type { Transaction } from '../../ports/store.ts';
import { findLocation } from '../comments/comment-location.ts';
import { threadExists } from '../comments/comment-writing.ts';
import { threadRecordsOf } from '../records/partitions.ts';
import { isReserved } from './queue.ts';

/** Throws `id_taken` if a comment has the id, or held content does. */
export async function requireFreeCommentId(tx: Transaction, environmentId: string, id: string): Promise<void> {
  const location = await findLocation(tx, environmentId, id);
  const exists = location !== undefined && (await tx.get(location.partition, location.key)) !== undefined;
  if (exists || (await isReserved(tx, environmentId, 'comment', id)))
    throw new CollabError('id_taken', `The id ${id} is taken by another comment`);
}

/** Throws `id_taken` if a thread has the id, or a held thread does. */
export async function requireFreeThreadId(tx: Transaction, environmentId: string, id: string): Promise<void> {
  if (
    !(await threadExists(tx, threadRecordsOf(environmentId, id))) &&
    !(await isReserved(tx, environmentId, 'thread', id))
  )
    return;
  throw new CollabError('id_taken', `The id ${id} is taken by another thread`);
}
