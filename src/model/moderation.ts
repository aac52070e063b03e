import * as Type from 'typebox';
import type { Static } from 'typebox';
import type { AuditActor } from './environments/audit.ts';
import type { Comment } from './comment.ts';
import type { Via } from './event.ts';
import type { ThreadRecord } from './thread.ts';

/** The subject of an item of the moderation queue: held content (`comment`, `thread`, `edit`), or a reported comment. */
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
  /** The held comment, as the author wrote it. Null for a report, and once it is approved. */
  readonly comment: Comment | null;
  /** The held thread without its comment; null for any other kind, and once it is approved. */
  readonly thread: ThreadRecord | null;
  /** The secret key with which a backend wrote it; null if the author did, with a token. */
  readonly keyId: string | null;
  readonly via: Via;
  /** How many users have reported the comment. */
  readonly reports: number;
  /** ISO 8601 time at which it was held or first reported. */
  readonly createdAt: string;
  readonly decidedAt: string | null;
  readonly decidedBy: AuditActor | null;
  /** The reason of a rejection, which the author can read. */
  readonly rejection: string | null;
}

/** The `data` of the event `moderation.rejected`, for the author. */
export interface ContentRejected {
  readonly itemId: string;
  readonly kind: ModerationKind;
  readonly roomId: string;
  readonly threadId: string;
  readonly commentId: string;
  /** The author. */
  readonly userId: string;
  /** Why the moderator rejected it. */
  readonly reason: string;
  readonly decidedAt: string;
}

/** A report of a comment by a user, or by a backend without a user. */
export interface Report {
  readonly commentId: string;
  /** Null for a backend that names no user. */
  readonly userId: string | null;
  readonly reason: string;
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
  userId: Type.Optional(Type.String({ description: 'With a secret key: the user who reports; the key itself when absent.' })),
});
export type ReportCreate = Static<typeof ReportCreateSchema>;
