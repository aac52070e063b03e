import type { Comment } from './comment.ts';
import type { EventEnvelope } from './event.ts';
import type { Metadata } from './metadata.ts';
import type { Notification } from './notification.ts';
import type { Role } from './role.ts';
import type { Position } from './thread.ts';

/**
 * The client whose request runs a filter: a `user` in a browser, or a `backend` with a secret key, which has no role
 * and may act as no user.
 */
export type FilterActor = Readonly<{ kind: 'backend' | 'user'; userId: string | null; role: Role | null }>;

/** A comment that a filter may change before it is written. */
export interface DraftComment extends Pick<Comment, 'userId' | 'body' | 'mentions' | 'metadata'> {
  readonly attachmentIds: readonly string[];
}

/** The fields of a draft that a filter may change. */
export type DraftPatch = Partial<Pick<DraftComment, 'body' | 'mentions' | 'metadata'>>;

/**
 * The filters that run before a write or a connection, by name: what they receive, and what they may return to change
 * it (`never`: nothing).
 */
export interface WriteFilterTypes {
  'comment.create': {
    payload: { readonly roomId: string; readonly threadId: string; readonly comment: DraftComment };
    patch: DraftPatch;
  };
  'comment.update': {
    payload: {
      readonly roomId: string;
      readonly threadId: string;
      readonly commentId: string;
      readonly before: DraftComment;
      readonly comment: DraftComment;
    };
    patch: DraftPatch;
  };
  /** `patch` changes the first comment. */
  'thread.create': {
    payload: {
      readonly roomId: string;
      readonly position: Position | null;
      readonly metadata: Metadata;
      readonly comment: DraftComment;
    };
    patch: DraftPatch;
  };
  /** `resolved` is the state to be set. */
  'thread.resolve': {
    payload: { readonly roomId: string; readonly threadId: string; readonly resolved: boolean };
    patch: never;
  };
  'reaction.create': {
    payload: {
      readonly roomId: string;
      readonly threadId: string;
      readonly commentId: string;
      readonly userId: string;
      readonly emoji: string;
    };
    patch: never;
  };
  /**
   * Runs before the content is received: the size is a lower bound, by what the client declares; null if it declares
   * none.
   */
  'upload.create': {
    payload: {
      readonly userId: string;
      readonly filename: string;
      readonly mimeType: string;
      readonly sizeBytes: number | null;
    };
    patch: never;
  };
  'connection.open': {
    payload: { readonly userId: string; readonly rooms: readonly string[] | null; readonly origin: string };
    patch: never;
  };
}
/** The name of a filter that runs before a write or a connection. */
export type WriteFilter = keyof WriteFilterTypes;

/** All filters, by name: what they receive, and what they may return to change it (`never`: nothing). */
export interface FilterTypes extends WriteFilterTypes {
  /**
   * Runs before a channel (`inApp`, `email`, `webhook` …) delivers a notification. A rejection drops it for that
   * channel. For `inApp` it runs before the notification is created.
   */
  'notification.deliver': { payload: { readonly channel: string; readonly notification: Notification }; patch: never };
  /** Runs before an event is sent to a webhook endpoint. A rejection drops it for that endpoint. */
  'webhook.deliver': {
    payload: { readonly endpointId: string; readonly url: string; readonly event: EventEnvelope };
    patch: never;
  };
}
