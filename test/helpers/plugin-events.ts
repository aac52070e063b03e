import type { PluginEvent, PluginNotification } from '../../src/plugins/api.ts';
import type { Comment } from '../../src/model/comment.ts';

const AT = '2026-01-05T12:00:00.000Z';

/** A comment as the API returns it. */
export function commentOf(fields: Partial<Comment> = {}): Comment {
  return {
    id: 'com_1',
    threadId: 'thr_1',
    userId: 'ann',
    body: 'Hello',
    mentions: [],
    attachments: [],
    reactions: [],
    metadata: {},
    createdAt: AT,
    editedAt: null,
    ...fields,
  };
}

/** The event of a new comment. */
export function commentCreated(seq: number, fields: Partial<Comment> = {}, roomId = 'page-1'): PluginEvent {
  const comment = commentOf(fields);
  return {
    type: 'comment.created',
    seq,
    eventId: `evt_${seq}`,
    at: AT,
    roomId,
    threadId: comment.threadId,
    actor: { userId: comment.userId, via: 'rest' },
    data: comment,
  };
}

/** The event of a changed or erased user. */
export function userUpdated(seq: number, userId: string, fields: { readonly erased?: true } = {}): PluginEvent {
  const data = {
    id: userId,
    userId,
    name: null,
    avatarUrl: null,
    kind: 'user',
    metadata: {},
    createdAt: AT,
    updatedAt: AT,
    firstSeenAt: null,
    lastSeenAt: null,
    online: false,
    ...fields,
  };
  return { type: 'user.updated', seq, eventId: `evt_${seq}`, at: AT, actor: { userId: null, via: 'rest' }, data };
}

/** The notification of `bob` about a comment of `ann`. */
export function notificationOf(fields: Partial<PluginNotification> = {}): PluginNotification {
  return {
    id: 'ntf_1',
    userId: 'bob',
    kind: 'mention',
    roomId: 'page-1',
    threadId: 'thr_1',
    commentId: 'com_1',
    actorId: 'ann',
    readAt: null,
    createdAt: AT,
    updatedAt: AT,
    ...fields,
  };
}

/** The event of a new notification. */
export function notificationCreated(seq: number, fields: Partial<PluginNotification> = {}): PluginEvent {
  const notification = notificationOf(fields);
  const type = 'notification.created' as PluginEvent['type'];
  const { roomId, threadId, actorId } = notification;
  return {
    type,
    seq,
    eventId: `evt_${seq}`,
    at: AT,
    roomId,
    threadId,
    actor: { userId: actorId, via: 'rest' },
    data: { ...notification, inApp: true },
  };
}
