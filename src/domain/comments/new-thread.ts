import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import type { ThreadRecord } from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { requireFreeThreadId } from '../moderation/free-ids.ts';
import { roomRecordsOf } from '../records/partitions.ts';
import { requireKnownAuthor } from '../users/users.ts';
import type { ThreadDraft } from './comment-draft.ts';
import { nextTimeInRoom } from './thread-time.ts';

/**
 * Makes the record of a new thread in the transaction that writes or holds it, and its author if that is allowed; the
 * record is not written. Throws `unknown_user`, `id_taken`.
 *
 * @returns the record, and its `createdAt` in milliseconds since the epoch
 */
export async function newThreadRecord(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  roomId: string,
  { id: chosenId, position, first }: ThreadDraft,
): Promise<{ record: ThreadRecord; now: number }> {
  const environmentId = actor.environment.id;
  const { userId, metadata } = first;
  await requireKnownAuthor(ctx, tx, actor, userId);
  if (chosenId !== undefined) await requireFreeThreadId(tx, environmentId, chosenId);
  const now = await nextTimeInRoom(ctx, tx, roomRecordsOf(environmentId, roomId));
  const at = timestamp(now);
  const id = chosenId ?? newId('th_', now);
  return {
    record: {
      id,
      roomId,
      resolved: false,
      position,
      metadata,
      userId,
      createdAt: at,
      updatedAt: at,
      resolvedAt: null,
      resolvedBy: null,
    },
    now,
  };
}
