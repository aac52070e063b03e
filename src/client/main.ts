// The entry of `collab/client`: for browsers and backends, without dependencies.

export { CollabError, type CollabErrorCode } from './errors.ts';
export type { CollabFiles, UploadOptions } from './files/files.ts';
export type { CollabInbox, InboxItem, InboxSnapshot } from './inbox/inbox.ts';
export type { SocketConstructor, Unsubscribe } from './platform.ts';
export { type CollabRoom, type NewComment, type NewThread, type RoomEvents } from './room/room.ts';
export type { RoomComment, RoomSnapshot, RoomThread, TypingUser } from './room/snapshot.ts';
export type { ConnectionStatus, SessionOptions, SessionState, TokenProvider, TokenReason } from './session/options.ts';
export { CollabSession } from './session/session.ts';
export type { EventList, EventPage } from './rest/event-pages.ts';
export {
  type BackendUser,
  CollabClient,
  type HeldContent,
  type NotificationSettingsChange,
  type P2pState,
  type P2pStateWritten,
  type QueueItem,
  type Subscription,
  type ThreadWithComments,
  type TokenRequest,
} from './rest/client.ts';
export type { Call, CallOptions, ClientOptions } from './rest/transport.ts';
export { type VerifiedWebhook, verifyWebhook, type WebhookDelivery } from './rest/webhooks.ts';
export type { Attachment } from '../model/attachment.ts';
export type { Comment } from '../model/comment.ts';
export type { StreamEvent } from '../model/frames.ts';
export type { Report } from '../model/moderation.ts';
export type { Notification, NotificationSettings } from '../model/notification.ts';
export type { Presence } from '../model/presence.ts';
export type { Reaction } from '../model/reaction.ts';
export type { ReadRoom, Room } from '../model/room.ts';
export type { Position, Thread } from '../model/thread.ts';
export type { User, UserSummary } from '../model/user.ts';

/** The release of the SDK, which is that of the server it comes with. */
export const version = '0.1.0';
