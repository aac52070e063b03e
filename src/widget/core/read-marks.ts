import type { RoomThread } from '../../client/room/snapshot.ts';
import type { RoomStorage } from './storage.ts';

interface Marks {
  /** Comments up to this time count as read: that of the first visit. */
  readonly since: string;
  readonly threads: Readonly<Record<string, string>>;
}

/** At most so many threads are remembered; the longest unread ones are forgotten first. */
const MAX_THREADS = 1_000;

/** Which comments this user has seen in this browser. Threads from before the first visit count as read. */
export class ReadMarks {
  readonly #storage: RoomStorage;
  #marks: Marks;

  /** @param now the time of the first visit, ISO 8601 */
  constructor(storage: RoomStorage, now: string) {
    this.#storage = storage;
    const stored = storage.read('read') as Marks | null;
    this.#marks = typeof stored?.since === 'string' ? stored : { since: now, threads: {} };
    if (stored === null) storage.write('read', this.#marks);
  }

  /** Whether the thread has a comment of another user that has not been seen. */
  isUnread(thread: RoomThread, userId: string | null): boolean {
    const until = this.#marks.threads[thread.id] ?? this.#marks.since;
    return thread.comments.some((comment) => comment.userId !== userId && comment.createdAt > until);
  }

  /** Notes that everything in the thread has been seen. Returns whether that is new. */
  markRead(thread: RoomThread): boolean {
    const last = thread.comments.reduce((latest, { createdAt }) => (createdAt > latest ? createdAt : latest), '');
    const until = this.#marks.threads[thread.id] ?? this.#marks.since;
    if (last <= until) return false;
    const threads = Object.entries({ ...this.#marks.threads, [thread.id]: last });
    const kept = threads.toSorted(([, a], [, b]) => b.localeCompare(a)).slice(0, MAX_THREADS);
    this.#marks = { ...this.#marks, threads: Object.fromEntries(kept) };
    this.#storage.write('read', this.#marks);
    return true;
  }
}
