import type { Comment } from '../../model/comment.ts';
import type { PresenceRow } from '../../model/frames.ts';
import type { Thread } from '../../model/thread.ts';
import type { UserSummary } from '../../model/user.ts';
import type { CollabError } from '../errors.ts';

/** A change of a record that the server has not confirmed yet. */
export type PendingChange = 'create' | 'update' | 'delete';

/**
 * A comment, as the server has it with the unconfirmed changes of this session applied. One of this user that waits for
 * a moderator has the status `held`; with a held edit, `published` is what others see.
 */
export interface RoomComment extends Comment {
  /** Null once the server has confirmed everything. A comment with `delete` is no longer in the snapshot. */
  readonly pending: Exclude<PendingChange, 'delete'> | null;
}

/** A thread with its comments, oldest first. `commentCount` counts them, without those that were never published. */
export interface RoomThread extends Thread {
  readonly comments: readonly RoomComment[];
  /** `create` until the server has confirmed the thread, `update` while it is being resolved or reopened, else null. */
  readonly pending: Exclude<PendingChange, 'delete'> | null;
}

/** A user who is typing; `threadId` is null for a new thread. */
export interface TypingUser {
  readonly userId: string;
  readonly threadId: string | null;
}

/**
 * The contents of a room. Each change makes a new object; the parts that did not change stay the same objects, so they
 * can be compared with `===`.
 */
export interface RoomSnapshot {
  readonly roomId: string;
  /** `loading` until everything is there; `failed` if the server refused to show the room, with `error`. */
  readonly status: 'loading' | 'ready' | 'failed';
  readonly error: CollabError | null;
  /**
   * All threads of the room, newest first. While the room is loaded again after a long absence, the earlier ones stay.
   */
  readonly threads: readonly RoomThread[];
  /**
   * The users that the session knows, by id: authors, mentioned users, and users who react or are present. A user that
   * is not known, or not known yet, is absent: show the id.
   */
  readonly users: Readonly<Record<string, UserSummary>>;
  /** The users in the room, including this one, in the order in which they joined. */
  readonly presence: readonly PresenceRow[];
  /** The users who are typing, without this one. */
  readonly typing: readonly TypingUser[];
}
