import type { Comment } from '../model/comment.ts';
import type { Metadata } from '../model/metadata.ts';
import type { Notification } from '../model/notification.ts';
import type { Position } from '../model/thread.ts';

/** A comment before it is written. */
export interface FilteredComment extends Pick<Comment, 'userId' | 'body' | 'mentions' | 'metadata'> {
  readonly attachmentIds: readonly string[];
}

/** The fields of a comment that filters changed. */
export type FilteredFields = Partial<Pick<FilteredComment, 'body' | 'mentions' | 'metadata'>>;

/** The payloads that are filtered before a write or a connection, by the name of the filter: the payloads of `FilterTypes` in plugins/api.ts. */
export interface FilterPayloads {
  'comment.create': { readonly roomId: string; readonly threadId: string; readonly comment: FilteredComment };
  'comment.update': { readonly roomId: string; readonly threadId: string; readonly commentId: string; readonly before: FilteredComment; readonly comment: FilteredComment };
  'thread.create': { readonly roomId: string; readonly position: Position | null; readonly metadata: Metadata; readonly comment: FilteredComment };
  'thread.resolve': { readonly roomId: string; readonly threadId: string; readonly resolved: boolean };
  'reaction.create': { readonly roomId: string; readonly threadId: string; readonly commentId: string; readonly userId: string; readonly emoji: string };
  'upload.create': { readonly userId: string; readonly filename: string; readonly mimeType: string; readonly sizeBytes: number | null };
  'connection.open': { readonly userId: string; readonly rooms: readonly string[] | null; readonly origin: string };
}
/** A filter that runs before a write or a connection. */
export type WriteFilter = keyof FilterPayloads;

/** The sender of what is filtered. */
export interface FilterActor {
  readonly kind: 'backend' | 'user';
  readonly userId: string | null;
  readonly role: 'viewer' | 'member' | 'moderator' | null;
}

/** The decision of the filters. */
export type FilterOutcome =
  /** `fields` are those that filters changed. */
  | { readonly outcome: 'pass'; readonly fields: FilteredFields }
  /** `plugin` refuses it, with a message for the client. */
  | { readonly outcome: 'reject'; readonly plugin: string; readonly message: string; readonly status: 400 | 403 }
  /** `plugin` holds it for moderation; only comments and threads. `fields` are those that earlier filters changed. */
  | { readonly outcome: 'hold'; readonly plugin: string; readonly reason: string; readonly fields: FilteredFields };

/** Runs the filters of plugins, each within its deadline. */
export interface Filters {
  /** Whether any plugin filters this in the environment. A process checks it before every write, so it does not wait. */
  has(name: WriteFilter, environment: { readonly id: string; readonly slug: string }): boolean;
  /**
   * Runs the filters in order; the first rejection or hold stops. A filter that fails or passes its deadline counts as its
   * `onError` says. Never rejects.
   *
   * @param check throws if a comment with changed fields is not valid; such a change counts as a failure of its filter
   */
  run<N extends WriteFilter>(
    name: N,
    environment: { readonly id: string; readonly slug: string },
    actor: FilterActor,
    payload: FilterPayloads[N],
    check?: (comment: FilteredComment) => void,
  ): Promise<FilterOutcome>;
}

/**
 * Resolves with whether the filters of plugins let the inbox of a user show a notification. It is called before the notification
 * is stored, and again for the same notification if storing it is retried. Never rejects.
 */
export type InboxFilter = (environment: { readonly id: string; readonly slug: string }, notification: Notification) => Promise<boolean>;
