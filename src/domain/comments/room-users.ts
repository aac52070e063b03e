import type { Context } from '../context.ts';
import { roomRecordsOf, THREAD_PREFIX } from '../records/partitions.ts';
import { threadUsers } from './thread-view.ts';
import { CollabError } from '../../model/errors.ts';

const SLICE = 500;

/** The ids of the users who wrote or are mentioned in a room, read once per change of the room. Empty for an unknown room. */
export function usersOfRoom(ctx: Context, environmentId: string, roomId: string): Promise<ReadonlySet<string>> {
  const partition = roomRecordsOf(environmentId, roomId);
  return ctx.store.cached(`users ${partition}`, [partition], async () => {
    const ids = new Set<string>();
    for (let after: string | undefined; ; ) {
      const slice = await ctx.store.range(partition, { prefix: THREAD_PREFIX, after, limit: SLICE });
      for (const { value: threadId } of slice) for (const id of await usersOfThread(ctx, environmentId, threadId)) ids.add(id);
      if (slice.length < SLICE) return ids;
      after = slice.at(-1)?.key;
    }
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
