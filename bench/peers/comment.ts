/** What every storage of the Fastify peer keeps, whatever its database. */
import { randomBytes } from 'node:crypto';

/** A comment with the fields of Collab's responses. */
export interface Comment {
  readonly id: string;
  readonly threadId: string;
  readonly userId: string;
  readonly body: string;
  readonly mentions: readonly string[];
  readonly attachments: readonly [];
  readonly reactions: readonly [];
  readonly metadata: Record<string, never>;
  readonly createdAt: string;
  readonly editedAt: string | null;
}

/** The fields of a validated body. */
export interface CommentInput {
  readonly userId: string;
  readonly body: string;
  readonly mentions?: readonly string[];
}

/** A notification of a user about a comment, and the position of its event. */
export interface Notified {
  readonly id: string;
  readonly userId: string;
  readonly seq: number;
}

/** A stored comment, its position in the event log, and whom it has notified. */
export interface Written {
  readonly comment: Comment;
  readonly roomId: string;
  readonly seq: number;
  readonly notified: readonly Notified[];
}

/** A comment as a database returns it: `mentions` is JSON. */
export interface CommentRow {
  readonly id: string;
  readonly threadId: string;
  readonly userId: string;
  readonly body: string;
  readonly mentions: string;
  readonly createdAt: string;
  readonly editedAt: string | null;
}

/** A database behind the peer. Every write is one transaction that is on disk when it resolves. */
export interface Storage {
  putUser(id: string, name: string | null): Promise<void>;
  createThread(roomId: string, input: CommentInput): Promise<Written | 'no user'>;
  createComment(threadId: string, input: CommentInput): Promise<Written | 'no thread' | 'no user'>;
  /** All comments of a thread, oldest first; null if there is no such thread. */
  listComments(threadId: string): Promise<Comment[] | null>;
}

/** Makes a comment with a new id. */
export function newComment(threadId: string, input: CommentInput, at: string): Comment {
  return {
    id: newId(),
    threadId,
    userId: input.userId,
    body: input.body,
    mentions: input.mentions ?? [],
    attachments: [],
    reactions: [],
    metadata: {},
    createdAt: at,
    editedAt: null,
  };
}

/** The comment of a row. */
export function fromRow(row: CommentRow): Comment {
  const mentions = JSON.parse(row.mentions) as string[];
  return { ...row, mentions, attachments: [], reactions: [], metadata: {} };
}

/** Ids ordered by time, so that the pages of the primary key fill up in sequence. */
export function newId(): string {
  return Date.now().toString(36).padStart(9, '0') + randomBytes(9).toString('base64url');
}
