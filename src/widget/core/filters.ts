import type { RoomThread } from '../../client/room/snapshot.ts';

/** Which threads the panel lists. */
export const filters = ['open', 'resolved', 'mine', 'mentions'] as const;
/** One of `filters`. */
export type Filter = (typeof filters)[number];

/** A query of the panel for threads. */
export interface ThreadQuery {
  readonly filter: Filter;
  /** Text that a comment of the thread or the name of its author contains; empty for all. */
  readonly text: string;
}

/** The threads that a query finds, in their order. */
export function findThreads(
  threads: readonly RoomThread[],
  { filter, text }: ThreadQuery,
  userId: string | null,
  nameOf: (userId: string) => string,
): RoomThread[] {
  const wanted = text.trim().toLocaleLowerCase();
  return threads.filter(
    (thread) => inFilter(thread, filter, userId) && (wanted === '' || contains(thread, wanted, nameOf)),
  );
}

/** Whether a filter shows a thread. */
export function inFilter(thread: RoomThread, filter: Filter, userId: string | null): boolean {
  switch (filter) {
    case 'open':
      return !thread.resolved;
    case 'resolved':
      return thread.resolved;
    case 'mine':
      return thread.comments.some((comment) => comment.userId === userId);
    case 'mentions':
      return userId !== null && thread.comments.some((comment) => comment.mentions.includes(userId));
  }
}

function contains(thread: RoomThread, wanted: string, nameOf: (userId: string) => string): boolean {
  return thread.comments.some(({ body, userId, attachments }) =>
    [body, nameOf(userId), ...attachments.map(({ filename }) => filename)].some((text) =>
      text.toLocaleLowerCase().includes(wanted),
    ),
  );
}
