import type { Comment } from '../../model/comment.ts';
import type { ModerationItem } from '../../model/moderation.ts';
import type { Room } from '../../model/room.ts';
import type { Thread } from '../../model/thread.ts';
import { parseAnswer } from '../lists/answer-text.ts';
import { heldThreadView, heldView } from '../moderation/notices.ts';

// Held content in the reads of its author: `status: "held"` marks it, and no count includes it. The texts that
// everybody shares stay in the cache; only the copy of an author with held content is parsed and rendered again.

interface ThreadAnswer {
  readonly thread: Thread;
  readonly comments: readonly Comment[];
}

type ListedThread = Thread & { readonly comments?: readonly Comment[] };

interface RoomAnswer {
  readonly room: Room;
  readonly threads: readonly ListedThread[];
}

/** The answer to a read of a thread that is held itself, for its author. */
export function heldThreadText(item: ModerationItem): string {
  return JSON.stringify({
    thread: item.thread === null ? null : heldThreadView(item.thread),
    comments: commentsOf(item),
  });
}

/**
 * The answer to a read of a thread, with the held comments and edits of its reader; as it was if that is longer than
 * `maxChars`.
 */
export function threadTextWithHeld(text: string, held: readonly ModerationItem[], maxChars: number): string {
  const { thread, comments } = parseAnswer<ThreadAnswer>(text);
  return within(text, maxChars, { thread, comments: withHeldComments(comments, held) });
}

/**
 * The answer to a read of a room, with the held comments and edits of its reader, and with `addThreads` the held
 * threads. As it was if that is longer than `maxChars`.
 */
export function roomTextWithHeld(
  text: string,
  held: readonly ModerationItem[],
  { addThreads, includeComments, maxChars }: { addThreads: boolean; includeComments: boolean; maxChars: number },
): string {
  const answer = parseAnswer<RoomAnswer>(text);
  const threads: ListedThread[] = answer.threads.map((thread) =>
    thread.comments === undefined
      ? thread
      : {
          ...thread,
          comments: withHeldComments(
            thread.comments,
            held.filter(({ threadId }) => threadId === thread.id),
          ),
        },
  );
  for (const item of addThreads ? held : []) {
    if (item.thread === null || threads.some(({ id }) => id === item.threadId)) continue;
    const thread = heldThreadView(item.thread);
    const older = threads.findIndex(({ createdAt }) => createdAt < thread.createdAt);
    threads.splice(
      older < 0 ? threads.length : older,
      0,
      includeComments ? { ...thread, comments: commentsOf(item) } : thread,
    );
  }
  return within(text, maxChars, { ...answer, threads });
}

/** The comments of a thread, oldest first, with what is held of its reader. */
function withHeldComments(comments: readonly Comment[], held: readonly ModerationItem[]): readonly Comment[] {
  const merged = [...comments];
  for (const { kind, comment } of held) {
    if (comment === null) continue;
    const at = merged.findIndex(({ id }) => id === comment.id);
    const published = merged[at];
    // It may have been approved since the queue was read.
    if (kind === 'comment' && published === undefined) {
      const later = merged.findIndex(({ createdAt }) => createdAt > comment.createdAt);
      merged.splice(later < 0 ? merged.length : later, 0, heldView(comment));
    } else if (kind === 'edit' && published !== undefined && (published.editedAt ?? '') <= (comment.editedAt ?? '')) {
      merged[at] = heldView({ ...comment, reactions: published.reactions }, published);
    }
  }
  return merged;
}

const commentsOf = ({ comment }: ModerationItem): readonly Comment[] => (comment === null ? [] : [heldView(comment)]);

function within(text: string, maxChars: number, answer: ThreadAnswer | RoomAnswer): string {
  const merged = JSON.stringify(answer);
  return merged.length <= maxChars ? merged : text;
}
