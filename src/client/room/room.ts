import type { Comment } from '../../model/comment.ts';
import type { CursorPosition, FrameActor } from '../../model/frames.ts';
import type { Metadata } from '../../model/metadata.ts';
import type { PresenceState } from '../../model/presence.ts';
import type { Reaction } from '../../model/reaction.ts';
import type { Position, Thread } from '../../model/thread.ts';
import type { Unsubscribe } from '../platform.ts';
import type { RoomSnapshot } from './snapshot.ts';

/** A new thread. */
export interface NewThread extends NewComment {
  readonly position?: Position | undefined;
}

/** A new comment, or a changed one. */
export interface NewComment {
  readonly body: string;
  /** User ids. */
  readonly mentions?: readonly string[] | undefined;
  /** Ids of uploads. */
  readonly attachmentIds?: readonly string[] | undefined;
  readonly metadata?: Metadata | undefined;
  /** An id for the record, 8 to 64 of `A–Z a–z 0–9 _ -`; a random one if absent. */
  readonly id?: string | undefined;
}

/** The events of a room besides changes of its snapshot: messages of other clients, which are not stored. */
export interface RoomEvents {
  cursor: { readonly userId: string; readonly connectionId: string; readonly position: CursorPosition };
  broadcast: { readonly actor: FrameActor; readonly data: unknown };
  signal: { readonly actor: FrameActor; readonly from: string; readonly data: unknown };
}

/**
 * A room of a session. It is loaded and kept up to date while it has a subscriber; presence is joined for the same
 * time.
 *
 * Writes show in the snapshot at once. Each returns a promise of the record as the server has it. If the server refuses
 * the change, the snapshot goes back and the promise rejects with a `CollabError`. While there is no connection writes
 * wait, and are sent on the next one; a write is never applied twice.
 */
export interface CollabRoom {
  readonly roomId: string;
  /**
   * Calls `listener` after each change of the snapshot. The first subscriber loads the room. Fits
   * `useSyncExternalStore`.
   */
  subscribe(listener: () => void): Unsubscribe;
  /** The current contents; the same object until something changes. */
  getSnapshot(): RoomSnapshot;
  /** Loads the room if necessary. Resolves with the first complete snapshot; rejects if the room cannot be shown. */
  ready(): Promise<RoomSnapshot>;
  /** Loads everything again, such as after `failed`. */
  reload(): void;

  createThread(thread: NewThread): Promise<Thread>;
  setResolved(threadId: string, resolved: boolean): Promise<void>;
  /** Pins a thread to another place of the page. */
  moveThread(threadId: string, position: Position): Promise<void>;
  createComment(threadId: string, comment: NewComment): Promise<Comment>;
  /** Replaces the text, and what else is given; only comments of this user, unless it is a moderator. */
  updateComment(commentId: string, change: Omit<NewComment, 'id'>): Promise<Comment>;
  /** Deletes a comment, and its thread if it is the last one. */
  deleteComment(commentId: string): Promise<void>;
  /** Adds a reaction of this user. One that exists already is left as it is. */
  addReaction(commentId: string, emoji: string): Promise<Reaction>;
  removeReaction(reactionId: string): Promise<void>;

  /**
   * Replaces what others see of this user in `presence`; at most 4 KiB of JSON, or it throws `invalid_request`. Kept
   * over reconnects.
   */
  setPresence(state: PresenceState): void;
  /**
   * Call it at every key press: the SDK sends it every 3 s, and the end after 5 s without a call, or at once with
   * false.
   */
  setTyping(threadId: string | null, typing: boolean): void;
  /** Shares the position of the pointer, at most every 50 ms. Lost while there is no connection. */
  sendCursor(position: CursorPosition): void;
  /** Sends JSON of at most 8 KiB to all others in the room. Lost while there is no connection. */
  broadcast(data: unknown): void;
  /** Sends JSON of at most 16 KiB to one connection (`connectionIds` of `presence`). */
  signal(connectionId: string, data: unknown): void;
  /** Calls `listener` for each message of the type. */
  on<T extends keyof RoomEvents>(type: T, listener: (event: RoomEvents[T]) => void): Unsubscribe;
}
