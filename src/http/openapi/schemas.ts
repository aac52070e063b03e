import * as Type from 'typebox';
import { LoginSchema } from '../../model/environments/admin.ts';
import { type Comment, CommentCreateSchema, CommentPatchSchema } from '../../model/comment.ts';
import { EnvironmentCreateSchema, EnvironmentPatchSchema } from '../../model/environments/environment.ts';
import { KeyCreateSchema, KeyRotateSchema } from '../../model/environments/key.ts';
import { MetadataSchema } from '../../model/metadata.ts';
import { RejectionSchema, type Report, ReportCreateSchema } from '../../model/moderation.ts';
import { STATE_CONTENT_TYPE, SharedStatePutSchema } from '../../model/shared-state.ts';
import { type Reaction, ReactionCreateSchema } from '../../model/reaction.ts';
import { type ReadRoom, type Room, RoomPatchSchema } from '../../model/room.ts';
import { PositionSchema, type Thread, ThreadCreateSchema, ThreadPatchSchema } from '../../model/thread.ts';
import { TokenCreateSchema } from '../../model/environments/token.ts';
import { UserPutSchema, type UserSummary } from '../../model/user.ts';
import type { Attachment } from '../../model/attachment.ts';
import type { Notification } from '../../model/notification.ts';
import type { Presence } from '../../model/presence.ts';
import {
  AdminSchema,
  AdminSessionSchema,
  AuditRecordSchema,
  EnvironmentSchema,
  KeySchema,
  NewKeySchema,
} from './admin-schemas.ts';
import { ErrorSchema, ProblemSchema } from './error-schemas.ts';
import { anyEvent, eventSchemas } from './event-schemas.ts';
import { textOrNull, time, timeOrNull } from './field-schemas.ts';
import type { UserView } from '../../domain/users/users.ts';
import { requestSchema } from './request-schemas.ts';
import { schemaOf } from './schema-of.ts';
import { IceServerSchema, TurnCredentialsSchema } from './turn-schemas.ts';

const coordinate = () =>
  Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], {
    description: 'Null for a thread without position.',
  });

const ReactionSchema = schemaOf<Reaction>()(
  Type.Object({
    id: Type.String(),
    reactionId: Type.String({ description: 'The same as id.' }),
    commentId: Type.String(),
    threadId: Type.String(),
    userId: Type.String({ description: 'The user who reacted.' }),
    emoji: Type.String({ description: 'One emoji or a `:shortcode:`.' }),
    createdAt: time('When it was added.'),
  }),
);

const AttachmentSchema = schemaOf<Attachment>()(
  Type.Object({
    id: Type.String({ description: 'To be sent in `attachmentIds`.' }),
    type: Type.Union([Type.Literal('image'), Type.Literal('audio'), Type.Literal('video')]),
    filename: Type.String({ description: 'The name that was uploaded, without unsafe characters.' }),
    mimeType: Type.String(),
    sizeBytes: Type.Integer({ minimum: 1 }),
    url: Type.String({ description: 'The address of the file. It requires X-Service-Key and X-Service-Token.' }),
    thumbnailUrl: Type.Optional(Type.String({ description: 'Images only: a JPEG of 200x200 pixels.' })),
    durationMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'Audio and video only: milliseconds, if the duration can be determined.',
      }),
    ),
    width: Type.Optional(Type.Integer({ minimum: 1, description: 'Images only: pixels, after rotation.' })),
    height: Type.Optional(Type.Integer({ minimum: 1, description: 'Images only: pixels, after rotation.' })),
  }),
);

const commentFields = schemaOf<Omit<Comment, 'published'>>()(
  Type.Object({
    id: Type.String(),
    threadId: Type.String(),
    userId: Type.String({ description: 'Author.' }),
    body: Type.String(),
    mentions: Type.Array(Type.String()),
    attachments: Type.Array(AttachmentSchema),
    reactions: Type.Array(ReactionSchema),
    metadata: MetadataSchema,
    createdAt: time('When it was written.'),
    editedAt: timeOrNull('When it was last edited; null if never.'),
    status: Type.Optional(
      Type.Literal('held', {
        description:
          'Present while it, or the edit that is shown, waits for a moderator: only moderators and its author see that.',
      }),
    ),
  }),
).properties;
const CommentSchema = Type.Object({
  ...commentFields,
  published: Type.Optional(
    Type.Object({}, { description: 'With a held edit: the comment as everybody else sees it.' }),
  ),
});

const threadFields = {
  id: Type.String(),
  roomId: Type.String(),
  resolved: Type.Boolean(),
  positionX: coordinate(),
  positionY: coordinate(),
  position: Type.Union([PositionSchema, Type.Null()]),
  metadata: MetadataSchema,
  commentCount: Type.Integer({ minimum: 0 }),
  userId: Type.String({ description: 'Author of the first comment.' }),
  createdAt: time('When it was created.'),
  updatedAt: time('When it or one of its comments last changed.'),
  resolvedAt: timeOrNull('When it was resolved; null while it is open.'),
  resolvedBy: textOrNull('The user who resolved it; null while it is open, and if a backend resolved it.'),
};
const heldStatus = Type.Optional(
  Type.Literal('held', {
    description: 'Present if the thread waits for a moderator: only moderators and its author see it.',
  }),
);
const ThreadSchema = schemaOf<Thread>()(Type.Object({ ...threadFields, status: heldStatus }));
const ThreadWithCommentsSchema = Type.Object({
  ...threadFields,
  comments: Type.Optional(Type.Array(CommentSchema, { description: 'Only with include=comments.' })),
});
const CreatedThreadSchema = Type.Object({
  ...threadFields,
  comments: Type.Array(CommentSchema, { description: 'The first comment.' }),
  status: heldStatus,
});

const RoomSchema = schemaOf<Room>()(
  Type.Object({
    id: Type.String(),
    roomId: Type.String({ description: 'The same as id.' }),
    threadCount: Type.Integer({ minimum: 0 }),
    openThreadCount: Type.Integer({ minimum: 0 }),
    metadata: MetadataSchema,
    createdAt: time('When it was first used.'),
    updatedAt: time('When the room itself last changed.'),
    lastActivityAt: time('When anything in the room last changed.'),
  }),
);

const ReadRoomSchema = schemaOf<ReadRoom>()(
  Type.Object({
    ...RoomSchema.properties,
    createdAt: timeOrNull('When it was first used; null if nobody has used it yet.'),
    updatedAt: timeOrNull('When the room itself last changed; null if nobody has used it yet.'),
    lastActivityAt: timeOrNull('When anything in the room last changed; null if nobody has used it yet.'),
  }),
);

const PresenceSchema = schemaOf<Presence>()(
  Type.Object({
    userId: Type.String(),
    name: textOrNull('Display name.'),
    avatarUrl: textOrNull('Address of a picture.'),
    connections: Type.Integer({
      minimum: 1,
      description: 'Open tabs in the room; 1 for 10 s after the last one has left.',
    }),
    joinedAt: time('When the first tab joined.'),
    lastActiveAt: time('When a tab last sent a message in the room, to 10 s.'),
    state: Type.Record(Type.String(), Type.Unknown(), { description: 'The state that the client has published.' }),
  }),
);

// The stored user has two fields more, which no client sees.
const UserSchema = schemaOf<Omit<UserView, 'tokenScope' | 'setAt'>>()(
  Type.Object({
    id: Type.String(),
    userId: Type.String({ description: 'The same as id.' }),
    name: textOrNull('Display name.'),
    avatarUrl: textOrNull('Address of a picture.'),
    email: Type.Optional(textOrNull('Returned to backends only.')),
    kind: Type.Union([Type.Literal('user'), Type.Literal('bot')]),
    metadata: MetadataSchema,
    createdAt: time('When the user became known.'),
    updatedAt: time('When it last changed.'),
    firstSeenAt: timeOrNull('When the user first connected.'),
    lastSeenAt: timeOrNull('When the user was last connected, to the minute.'),
    online: Type.Boolean({ description: 'Whether the user is connected now.' }),
    erased: Type.Optional(
      Type.Literal(true, { description: 'Present only in the event that reports the erasure of the user.' }),
    ),
  }),
);

const NotificationSchema = schemaOf<Notification>()(
  Type.Object({
    id: Type.String(),
    userId: Type.String({ description: 'The user who is notified.' }),
    kind: Type.Union([Type.Literal('mention'), Type.Literal('reply')], {
      description: '`mention`: the comment mentions the user; `reply`: it is in a thread that the user follows.',
    }),
    roomId: Type.String(),
    threadId: Type.String(),
    commentId: Type.String(),
    actorId: Type.String({ description: 'The user who wrote or edited the comment.' }),
    readAt: timeOrNull('When it was marked as read; null while it is unread.'),
    createdAt: time('Time of the comment, or of the edit that mentioned the user.'),
    updatedAt: time('When a later edit mentioned the user again; otherwise `createdAt`.'),
  }),
);

const ReportSchema = schemaOf<Report>()(
  Type.Object({
    commentId: Type.String(),
    userId: textOrNull('The user who reported it; null for a backend that named none.'),
    reason: Type.String(),
    body: Type.Optional(
      Type.String({ description: 'The text as it was reported, if that differs from the first report.' }),
    ),
    createdAt: time('When it was reported.'),
  }),
);
const itemFields = {
  id: Type.String(),
  kind: Type.Union([Type.Literal('comment'), Type.Literal('thread'), Type.Literal('edit'), Type.Literal('report')], {
    description: 'Held content (`comment`, `thread`, `edit`), or a reported comment.',
  }),
  state: Type.Union([
    Type.Literal('held'),
    Type.Literal('reported'),
    Type.Literal('approved'),
    Type.Literal('rejected'),
  ]),
  roomId: Type.String(),
  threadId: Type.String(),
  commentId: Type.String(),
};
const rejection = textOrNull('Why it was rejected, for the author; null if it was not.');
const ModerationItemSchema = Type.Object({
  ...itemFields,
  userId: Type.String({ description: 'Author of the content.' }),
  plugin: textOrNull('The plugin that held the content; null for a report.'),
  reason: textOrNull('Why the plugin held it; null for a report.'),
  comment: Type.Union([CommentSchema, Type.Null()], {
    description:
      'The content as it would be; of a report, the comment as it was first reported. Null once held content is approved.',
  }),
  current: Type.Union([CommentSchema, Type.Null()], {
    description: 'Of a report, the comment as it is now, null if it was deleted; otherwise null.',
  }),
  before: Type.Union([CommentSchema, Type.Null()], {
    description: 'Of an edit, the comment as it is now; otherwise null.',
  }),
  thread: Type.Union([ThreadSchema, Type.Null()], {
    description: 'Of a held thread, the thread as it would be; otherwise null.',
  }),
  reportCount: Type.Integer({ minimum: 0, description: 'How many users have reported the comment.' }),
  reports: Type.Array(ReportSchema, { description: 'At most 100 of the reports.' }),
  createdAt: time('When it was held or first reported.'),
  decidedAt: timeOrNull('When it was decided; null before that.'),
  decidedBy: Type.Union(
    [Type.Object({ kind: Type.String(), id: Type.Union([Type.String(), Type.Null()]) }), Type.Null()],
    { description: 'As the actor in the audit log; null before that.' },
  ),
  rejection,
});
const HeldContentSchema = Type.Object({
  ...itemFields,
  comment: CommentSchema,
  createdAt: time('When it was held.'),
  decidedAt: timeOrNull('When it was rejected; null while it is held.'),
  rejection,
});
const kinds = () => Type.Object({ mention: Type.Boolean(), reply: Type.Boolean() });
const NotificationSettingsSchema = Type.Object(
  { inApp: kinds(), email: kinds(), webhook: kinds() },
  { description: 'Whether each channel delivers each kind. Other channels that were set have the same form.' },
);
const SubscriptionStateSchema = Type.Object({
  threadId: Type.String(),
  userId: Type.String(),
  state: Type.Union(
    [Type.Literal('default'), Type.Literal('subscribed'), Type.Literal('unsubscribed'), Type.Literal('muted')],
    { description: '`default`: the user has chosen nothing.' },
  ),
});

const stateFields = {
  roomId: Type.String(),
  version: Type.Integer({
    minimum: 0,
    description: 'Incremented by every change; 0 for a room that never had a state.',
  }),
  sizeBytes: Type.Integer({ minimum: 0, description: 'Size of the whole state in bytes.' }),
  updatedAt: timeOrNull('When it was last written; null if there is no state.'),
};
const SharedStateSchema = Type.Object({
  ...stateFields,
  state: textOrNull('The bytes as base64; null if there is no state.'),
  contentType: Type.Literal(STATE_CONTENT_TYPE),
  updatedBy: textOrNull('The user who wrote it; null for a backend.'),
});
const SharedStateWrittenSchema = Type.Object({
  ...stateFields,
  changed: Type.Optional(
    Type.Boolean({
      description:
        'Of a merge only: false if the state contained the update already, so that an earlier write made `version`.',
    }),
  ),
});

/** The fields of a user that browsers see. */
const UserSummarySchema = schemaOf<UserSummary>()(
  Type.Object({
    userId: Type.String(),
    name: textOrNull('Display name.'),
    avatarUrl: textOrNull('Address of a picture.'),
    kind: Type.Union([Type.Literal('user'), Type.Literal('bot')]),
  }),
);

const usersById = Type.Record(Type.String(), UserSummarySchema, { description: 'By id. Unknown users are absent.' });

/** `users` in a response to `include=users`. */
export const includedUsers = Type.Optional(usersById);

/** The durable events by their names in the OpenAPI document. */
export const namedEvents = eventSchemas({
  Thread: ThreadSchema,
  Comment: CommentSchema,
  Reaction: ReactionSchema,
  User: UserSchema,
  Notification: NotificationSchema,
});

/**
 * All other schemas that have a name in the OpenAPI document. Wherever one of these objects is used, the document has a
 * reference to it.
 */
export const namedSchemas = {
  Position: PositionSchema,
  Metadata: MetadataSchema,
  Attachment: AttachmentSchema,
  Comment: CommentSchema,
  CommentCreate: requestSchema(CommentCreateSchema),
  CommentPatch: requestSchema(CommentPatchSchema),
  Reaction: ReactionSchema,
  ReactionCreate: requestSchema(ReactionCreateSchema),
  Thread: ThreadSchema,
  ThreadCreate: requestSchema(ThreadCreateSchema),
  ThreadPatch: requestSchema(ThreadPatchSchema),
  CreatedThread: CreatedThreadSchema,
  ThreadWithComments: ThreadWithCommentsSchema,
  Room: RoomSchema,
  ReadRoom: ReadRoomSchema,
  RoomPatch: requestSchema(RoomPatchSchema),
  Presence: PresenceSchema,
  User: UserSchema,
  UserSummary: UserSummarySchema,
  UserPut: requestSchema(UserPutSchema),
  TokenCreate: requestSchema(TokenCreateSchema),
  Notification: NotificationSchema,
  Report: ReportSchema,
  ReportCreate: requestSchema(ReportCreateSchema),
  ModerationItem: ModerationItemSchema,
  Rejection: requestSchema(RejectionSchema),
  HeldContent: HeldContentSchema,
  NotificationSettings: NotificationSettingsSchema,
  Subscription: SubscriptionStateSchema,
  P2pState: SharedStateSchema,
  P2pStateWritten: SharedStateWrittenSchema,
  P2pStatePut: requestSchema(SharedStatePutSchema),
  IceServer: IceServerSchema,
  TurnCredentials: TurnCredentialsSchema,
  Event: anyEvent(namedEvents),
  Login: requestSchema(LoginSchema),
  AdminSession: AdminSessionSchema,
  Admin: AdminSchema,
  Environment: EnvironmentSchema,
  EnvironmentCreate: requestSchema(EnvironmentCreateSchema),
  EnvironmentPatch: requestSchema(EnvironmentPatchSchema),
  Key: KeySchema,
  NewKey: NewKeySchema,
  KeyCreate: requestSchema(KeyCreateSchema),
  KeyRotate: requestSchema(KeyRotateSchema),
  AuditRecord: AuditRecordSchema,
  Error: ErrorSchema,
  Problem: ProblemSchema,
} as const;

/** The schema of a list of `item`: `{"items":[…]}`. */
export const listOf = <T extends Parameters<typeof Type.Array>[0]>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    nextCursor: Type.Optional(Type.String({ description: 'Cursor of the next page; absent on the last page.' })),
  });

/** As `listOf`, with `users` after `include=users`. */
export const listWithUsers = <T extends Parameters<typeof Type.Array>[0]>(item: T) =>
  Type.Object({ ...listOf(item).properties, users: includedUsers });

/** The response of a lookup of users. */
export const foundUsers = Type.Object({ users: usersById });

/** The response of a deletion. */
export const deletedSchema = Type.Object({ deleted: Type.Literal(true) });
