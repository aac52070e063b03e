import * as Type from 'typebox';
import type { TSchema } from 'typebox';
import { errorKinds } from '../../model/errors.ts';
import { roleSchema } from '../../model/role-schema.ts';
import { deletedSchema, foundUsers, includedUsers, namedSchemas } from './schemas.ts';
import { dateTime } from './field-schemas.ts';

const id = Type.Integer({ minimum: 1, description: 'The id of the message that this answers.' });

const subscription = namedSchemas.Subscription;
const role = roleSchema({ description: 'The role of the token.' });
const resolved = Type.Object({ threadId: Type.String(), resolved: Type.Boolean() });
const unreadCount = Type.Integer({ minimum: 0 });
const nothing = Type.Object({});

/** The schema of `data` of `ok` by the type of the message that is answered. */
export const replySchemas: Readonly<Record<string, TSchema>> = {
  connect: Type.Object({ connectionId: Type.String() }),
  pong: nothing,
  'auth.refresh': Type.Object({ tokenExpiresAt: dateTime('Expiry of the new token.'), role }),
  'room.join': Type.Object({ roomId: Type.String() }),
  'room.leave': nothing,
  'presence.update': nothing,
  cursor: nothing,
  typing: nothing,
  'room.broadcast': nothing,
  'p2p.signal': nothing,
  'room.get': Type.Object({
    room: namedSchemas.ReadRoom,
    threads: Type.Array(namedSchemas.ThreadWithComments),
    nextCursor: Type.Optional(Type.String()),
    users: includedUsers,
  }),
  'thread.get': Type.Object({
    thread: namedSchemas.Thread,
    comments: Type.Array(namedSchemas.Comment),
    users: includedUsers,
  }),
  'users.lookup': foundUsers,
  'notifications.list': Type.Object({
    unreadCount,
    items: Type.Array(namedSchemas.Notification),
    nextCursor: Type.Optional(Type.String()),
  }),
  'notification-settings.get': namedSchemas.NotificationSettings,
  'thread.subscription': subscription,
  'thread.create': Type.Object({ thread: namedSchemas.CreatedThread }),
  'thread.update': resolved,
  'thread.resolve': resolved,
  'thread.reopen': resolved,
  'comment.create': Type.Object({ comment: namedSchemas.Comment }),
  'comment.update': Type.Object({ comment: namedSchemas.Comment }),
  'comment.delete': deletedSchema,
  'comment.report': Type.Object({ report: namedSchemas.Report }),
  'reaction.add': Type.Object({ reaction: namedSchemas.Reaction }),
  'reaction.remove': deletedSchema,
  'notifications.read': Type.Object({ unreadCount }),
  'notification-settings.put': namedSchemas.NotificationSettings,
  'thread.subscribe': subscription,
  'thread.unsubscribe': subscription,
  'thread.mute': subscription,
};

/** The reply to a message that succeeded. */
export const okSchema = (data: TSchema): TSchema => Type.Object({ type: Type.Literal('ok'), id, data });

const row = Type.Object({
  ...namedSchemas.Presence.properties,
  connectionIds: Type.Array(Type.String(), { description: 'The open connections of the user in the room.' }),
});
const actor = Type.Object({ userId: Type.String(), via: Type.Literal('ws'), connectionId: Type.String() });
const ofRoom = { at: dateTime('When it was sent.'), roomId: Type.String() };
const roomFrame = (type: string, data: TSchema): TSchema =>
  Type.Object({ type: Type.Literal(type), ...ofRoom, actor: Type.Optional(actor), data });

/** The schemas of the frames that the server sends besides replies and durable events, by type. */
export const frameSchemas: Readonly<Record<string, TSchema>> = {
  welcome: Type.Object({
    type: Type.Literal('welcome'),
    data: Type.Object({
      connectionId: Type.String(),
      userId: Type.String(),
      environmentId: Type.String(),
      epoch: Type.String({ description: 'Identifies the stream; positions are valid only within it.' }),
      seq: Type.Integer({ minimum: 0, description: 'Current position of the stream.' }),
      recovered: Type.Boolean({ description: 'Whether the missed events follow.' }),
      heartbeatMs: Type.Integer({ minimum: 1 }),
      maxMessageBytes: Type.Integer({ minimum: 1 }),
      tokenExpiresAt: Type.String(),
      role,
      serverTime: dateTime('The clock of the server.'),
    }),
  }),
  error: Type.Object({
    type: Type.Literal('error'),
    id: Type.Optional(id),
    error: Type.Object({
      code: Type.Union(Object.keys(errorKinds).map((code) => Type.Literal(code))),
      message: Type.String(),
      retryAfter: Type.Optional(
        Type.Integer({
          minimum: 1,
          description: 'Seconds until a repetition can succeed, for some refusals with `rate_limited`.',
        }),
      ),
    }),
  }),
  seq: Type.Object({
    type: Type.Literal('seq'),
    seq: Type.Integer({ minimum: 0, description: 'Advances the position without an event.' }),
  }),
  ping: Type.Object({ type: Type.Literal('ping') }, { description: 'Answer with `pong`.' }),
  'token.expiring': Type.Object({
    type: Type.Literal('token.expiring'),
    data: Type.Object({ tokenExpiresAt: Type.String() }),
  }),
  'presence.snapshot': roomFrame(
    'presence.snapshot',
    Type.Object({ roomId: Type.String(), items: Type.Array(row), partial: Type.Optional(Type.Literal(true)) }),
  ),
  'presence.joined': roomFrame('presence.joined', row),
  'presence.updated': roomFrame('presence.updated', row),
  'presence.left': roomFrame('presence.left', Type.Object({ userId: Type.String() })),
  cursor: roomFrame('cursor', Type.Object({ x: Type.Number(), y: Type.Number() })),
  typing: roomFrame(
    'typing',
    Type.Object({ threadId: Type.Union([Type.String(), Type.Null()]), typing: Type.Boolean() }),
  ),
  'room.broadcast': roomFrame('room.broadcast', Type.Unknown({ description: 'The inner `data` of the message.' })),
  'p2p.signal': roomFrame('p2p.signal', Type.Object({ from: Type.String(), to: Type.String(), data: Type.Unknown() })),
};
