import * as Type from 'typebox';
import type { Static } from 'typebox';
import type { AuditActor } from './environments/audit.ts';
import type { Comment } from './comment.ts';
import type { Via } from './event.ts';
import type { Thread, ThreadRecord } from './thread.ts';

/**
 * The subject of an item of the moderation queue: held content (`comment`, `thread`, `edit`), or a reported comment.
 */
export type ModerationKind = 'comment' | 'thread' | 'edit' | 'report';
/** `held` and `reported` items wait for a decision. */
export type ModerationState = 'held' | 'reported' | 'approved' | 'rejected';

/** An item of the moderation queue, as it is stored. */
export interface ModerationItem {
  readonly id: string;
  readonly kind: ModerationKind;
  readonly state: ModerationState;
  readonly roomId: string;
  readonly threadId: string;
  readonly commentId: string;
  /** The author of the comment. */
  readonly userId: string;
  /** The plugin that held it and its reason, for moderators; null for a report. */
  readonly plugin: string | null;
  readonly reason: string | null;
  /**
   * The held comment, as the author wrote it, or the reported one, as it was first reported. Null once held content is
   * approved, and in reports of earlier versions.
   */
  readonly comment: Comment | null;
  /** The held thread without its comment; null for any other kind, and once it is approved. */
  readonly thread: ThreadRecord | null;
  /** The secret key with which a backend wrote it; null if the author did, with a token. */
  readonly keyId: string | null;
  /**
   * The user for whom the backend wrote it; null or absent if it named none, or if its author wrote it with a token.
   */
  readonly actsFor?: string | null;
  readonly via: Via;
  /** How many users have reported the comment. */
  readonly reports: number;
  /**
   * The latest reports, at most 100, once no more are added: it is decided, or the comment was deleted. Absent before,
   * and in items of earlier versions.
   */
  readonly keptReports?: readonly Report[];
  /** ISO 8601 time at which it was held or first reported. */
  readonly createdAt: string;
  readonly decidedAt: string | null;
  readonly decidedBy: AuditActor | null;
  /** The reason of a rejection, which the author can read. */
  readonly rejection: string | null;
}

/** What the `data` of every event of the moderation queue has. */
export interface ModerationNotice {
  readonly itemId: string;
  readonly kind: ModerationKind;
  readonly roomId: string;
  readonly threadId: string;
  readonly commentId: string;
  /** The author. */
  readonly userId: string;
}

/** The `data` of the event `moderation.held`: content waits for a moderator. */
export interface ContentHeld extends ModerationNotice {
  /** The comment as its author sees it from now on: with the status `held`. */
  readonly comment: Comment;
  /** The held thread of which it is the first comment; null for any other kind. */
  readonly thread: Thread | null;
  /** The item that this one takes the place of, because its author has changed held content; null if there is none. */
  readonly replaces: string | null;
}

/** The `data` of the event `moderation.reported`. Who reported the comment, and why, is in the queue only. */
export interface ContentReported extends ModerationNotice {
  /** The comment as it was reported. */
  readonly comment: Comment;
  /** How many users have reported it. */
  readonly reportCount: number;
}

/**
 * The `data` of the event `moderation.approved`. The event of the content itself follows, unless it was reported only.
 */
export interface ContentApproved extends ModerationNotice {
  readonly decidedAt: string;
}

/**
 * Why content left the queue without being published: a moderator rejected it, its author or a backend withdrew it, a
 * later edit was published, or what it belongs to was deleted.
 */
export type RejectionCause = 'moderator' | 'withdrawn' | 'replaced' | 'deleted';

/** The `data` of the event `moderation.rejected`. */
export interface ContentRejected extends ModerationNotice {
  readonly cause: RejectionCause;
  /**
   * Why, for the author: the text of the moderator, or that what it belongs to was deleted; empty for any other cause.
   */
  readonly reason: string;
  readonly decidedAt: string;
}

/** A report of a comment by a user, or by a backend without a user. */
export interface Report {
  readonly commentId: string;
  /** Null for a backend that names no user. */
  readonly userId: string | null;
  readonly reason: string;
  /** The text as it was reported, if it is another one than that of the first report of the item. */
  readonly body?: string;
  readonly createdAt: string;
}

/** The longest reason of a report or rejection, in UTF-16 units. */
const MAX_REASON = 1_000;

/** The body of a rejection. */
export const RejectionSchema = Type.Object({
  reason: Type.String({ minLength: 1, maxLength: MAX_REASON, description: 'Shown to the author.' }),
});
export type RejectionInput = Static<typeof RejectionSchema>;

/** The body of a report. */
export const ReportCreateSchema = Type.Object({
  reason: Type.String({ minLength: 1, maxLength: MAX_REASON, description: 'Shown to moderators.' }),
  userId: Type.Optional(
    Type.String({ description: 'With a secret key: the user who reports; the key itself when absent.' }),
  ),
});
export type ReportCreate = Static<typeof ReportCreateSchema>;
