import type { Comment } from './comment.ts';
import type { ErrorCode } from './errors.ts';
import type { EventEnvelope, EventType } from './event.ts';
import type { ContentApproved, ContentHeld, ContentRejected, ContentReported } from './moderation.ts';
import type { NotificationCreated, NotificationsRead } from './notification.ts';
import type { Presence } from './presence.ts';
import type { Reaction } from './reaction.ts';
import type { Role } from './role.ts';
import type { Thread } from './thread.ts';
import type { User } from './user.ts';

/** The data of the first frame of a WebSocket (docs/realtime.md, "Frames"). */
export interface Welcome {
  readonly connectionId: string;
  readonly userId: string;
  readonly environmentId: string;
  readonly epoch: string;
  /** Current position of the stream. With `recovered`, the missed events up to it follow; otherwise only later ones. */
  readonly seq: number;
  readonly recovered: boolean;
  readonly heartbeatMs: number;
  readonly maxMessageBytes: number;
  readonly tokenExpiresAt: string;
  /** What the token allows. */
  readonly role: Role;
  readonly serverTime: string;
}

/** A user as events describe it: without `email`, and with `erased` after an erasure. */
export type EventUser = Omit<User, 'email'> & { readonly erased?: true };

/** A change of the shared state of a room, without its bytes. */
export interface SharedStateChange {
  readonly roomId: string;
  readonly version: number;
  readonly sizeBytes: number;
  readonly updatedAt: string;
  readonly updatedBy: string | null;
}

/** `data` of each type of event. */
export interface EventData {
  'thread.created': { readonly thread: Thread; readonly comment: Comment };
  'thread.updated': Thread;
  'thread.resolved': Thread;
  'thread.reopened': Thread;
  'thread.deleted': { readonly threadId: string };
  'comment.created': Comment;
  'comment.updated': Comment;
  'comment.deleted': { readonly commentId: string; readonly threadId: string; readonly threadDeleted: boolean };
  'reaction.created': Reaction;
  'reaction.deleted': Pick<Reaction, 'reactionId' | 'commentId' | 'threadId' | 'userId' | 'emoji'>;
  'user.updated': EventUser;
  'p2p.state.updated': SharedStateChange;
  'p2p.state.cleared': SharedStateChange;
  'notification.created': NotificationCreated;
  'notification.read': NotificationsRead;
  'moderation.held': ContentHeld;
  'moderation.reported': ContentReported;
  'moderation.approved': ContentApproved;
  'moderation.rejected': ContentRejected;
}

/** An event of the stream with the `data` of its type. */
export type StreamEvent = {
  [T in EventType & keyof EventData]: EventEnvelope & { readonly type: T; readonly data: EventData[T] };
}[EventType & keyof EventData];

/** A user in a room as sockets receive it. `connectionIds` are the open connections. */
export type PresenceRow = Presence & { readonly connectionIds: readonly string[] };

/** The sender of a frame in a room. */
export interface FrameActor {
  readonly userId: string;
  readonly via: 'ws';
  readonly connectionId: string;
}

/** The position of a pointer; other fields are those that the sender added. */
export interface CursorPosition {
  readonly x: number;
  readonly y: number;
  readonly [field: string]: unknown;
}

/** `data` of the frames about a room, which are not stored and have no `seq`. */
export interface RoomFrameData {
  /** `partial` as in `GET /rooms/:roomId/presence`. */
  'presence.snapshot': { readonly roomId: string; readonly items: readonly PresenceRow[]; readonly partial?: true };
  'presence.joined': PresenceRow;
  'presence.updated': PresenceRow;
  'presence.left': { readonly userId: string };
  cursor: CursorPosition;
  typing: { readonly threadId: string | null; readonly typing: boolean };
  'room.broadcast': unknown;
  'p2p.signal': { readonly from: string; readonly to: string; readonly data: unknown };
}

/** A frame about a room. `actor` is present on those that another client sent. */
export type RoomFrame = {
  [T in keyof RoomFrameData]: {
    readonly type: T;
    readonly at: string;
    readonly roomId: string;
    readonly actor?: FrameActor;
    readonly data: RoomFrameData[T];
  };
}[keyof RoomFrameData];

/** A refusal over WebSocket. */
export interface FrameError {
  readonly code: ErrorCode;
  readonly message: string;
  /** Seconds until a repetition can succeed. */
  readonly retryAfter?: number;
}

/** Frames that concern the connection itself. */
export type ControlFrame =
  | { readonly type: 'welcome'; readonly data: Welcome }
  | { readonly type: 'ok'; readonly id: number; readonly data: unknown }
  | { readonly type: 'error'; readonly id?: number; readonly error: FrameError }
  | { readonly type: 'seq'; readonly seq: number }
  | { readonly type: 'ping' }
  | { readonly type: 'token.expiring'; readonly data: { readonly tokenExpiresAt: string } };

/** Every frame that a server of this release sends. A client must ignore types that it does not know. */
export type ServerFrame = ControlFrame | RoomFrame | StreamEvent;
