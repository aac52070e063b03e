import type { Context } from '../context.ts';
import { roomRecordsOf, THREAD_PREFIX } from '../records/partitions.ts';
import { scanEntries } from '../records/scan.ts';
import { threadUsers } from './thread-view.ts';
import { CollabError } from '../../model/errors.ts';

/**
 * The ids of the users who wrote or are mentioned in a room, read once per change of the room. Empty for an unknown
 * room.
 */
export function usersOfRoom(ctx: Context, environmentId: string, roomId: string): Promise<ReadonlySet<string>> {
  const partition = roomRecordsOf(environmentId, roomId);
  return ctx.store.cached(`users ${partition}`, [partition], async () => {
    const ids = new Set<string>();
    for await (const { value: threadId } of scanEntries(ctx.store, partition, THREAD_PREFIX)) {
      for (const id of await usersOfThread(ctx, environmentId, threadId)) ids.add(id);
    }
    return ids;
  });
}

async function usersOfThread(ctx: Context, environmentId: string, threadId: string): Promise<string[]> {
  try {
    const { participants, mentioned } = await threadUsers(ctx, environmentId, threadId);
    return [...participants, ...mentioned];
  } catch (thrown) {
    // The thread was deleted since the index was read.
    if (thrown instanceof CollabError && thrown.code === 'thread_not_found') return [];
    throw thrown;
  }
}
