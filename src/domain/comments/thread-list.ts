import { hasMetadata } from '../../model/metadata.ts';
import type { Thread } from '../../model/thread.ts';
import type { Context } from '../context.ts';
import { type Filters, hasFilters, type ListQuery } from '../lists/list-query.ts';
import type { ListRows } from '../lists/paging.ts';
import { THREAD_PREFIX } from '../records/partitions.ts';
import { threadUsers, type ThreadView, threadViewOrNull } from './thread-view.ts';

/** The threads of a room as the rows of a list for `readPage`. `partition` is that of the room. */
export function threadList(
  ctx: Context,
  environmentId: string,
  partition: string,
  query: ListQuery,
): ListRows<ThreadView> {
  const isFiltered = hasFilters(query);
  return {
    partition,
    prefix: THREAD_PREFIX,
    isFiltered,
    load: async ({ value: threadId }) => {
      const view = await threadViewOrNull(ctx, environmentId, threadId);
      if (!isFiltered || view === null) return view;
      return (await matches(ctx, environmentId, view.thread, query.filters)) ? view : null;
    },
    updatedAt: ({ thread }) => thread.updatedAt,
  };
}

async function matches(
  ctx: Context,
  environmentId: string,
  thread: Thread,
  filters: Readonly<Filters>,
): Promise<boolean> {
  const { resolved, userId, createdSince, updatedSince, metadata, participantId, mentions } = filters;
  if (resolved !== undefined && thread.resolved !== resolved) return false;
  if (userId !== undefined && thread.userId !== userId) return false;
  if (createdSince !== undefined && thread.createdAt < createdSince) return false;
  if (updatedSince !== undefined && thread.updatedAt < updatedSince) return false;
  if (!hasMetadata(thread.metadata, metadata)) return false;
  if (participantId === undefined && mentions === undefined) return true;
  const users = await threadUsers(ctx, environmentId, thread.id);
  return (
    (participantId === undefined || users.participants.has(participantId)) &&
    (mentions === undefined || users.mentioned.has(mentions))
  );
}
