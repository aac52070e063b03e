import Type from 'typebox';
import { LoginSchema } from '../../model/admin.ts';
import { CommentCreateSchema, CommentPatchSchema } from '../../model/comment.ts';
import { EnvironmentCreateSchema, EnvironmentPatchSchema } from '../../model/environment.ts';
import { KeyCreateSchema, KeyRotateSchema } from '../../model/key.ts';
import { MetadataSchema } from '../../model/metadata.ts';
import { P2P_CONTENT_TYPE, P2pStatePutSchema } from '../../model/p2p-state.ts';
import { ReactionCreateSchema } from '../../model/reaction.ts';
import { RoomPatchSchema } from '../../model/room.ts';
import { PositionSchema, ThreadCreateSchema, ThreadPatchSchema } from '../../model/thread.ts';
import { TokenCreateSchema } from '../../model/token.ts';
import { UserPutSchema } from '../../model/user.ts';
import { AdminSchema, AdminSessionSchema, EnvironmentSchema, KeySchema, NewKeySchema } from './admin-schemas.ts';
import { anyEvent, eventSchemas } from './event-schemas.ts';

const time = (description: string) => Type.String({ format: 'date-time', description: `${description} ISO 8601, UTC, with milliseconds.` });
const timeOrNull = (description: string) => Type.Union([time(description), Type.Null()]);
const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
const coordinate = () => Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], { description: 'Null for a thread without position.' });

const ReactionSchema = Type.Object({
  id: Type.String(),
  reactionId: Type.String({ description: 'The same as id.' }),
  commentId: Type.String(),
  threadId: Type.String(),
  userId: Type.String({ description: 'Who reacted.' }),
  emoji: Type.String({ description: 'One emoji or a `:shortcode:`.' }),
  createdAt: time('When it was added.'),
});

const AttachmentSchema = Type.Object({
  id: Type.String({ description: 'Goes into attachmentIds.' }),
  type: Type.Union([Type.Literal('image'), Type.Literal('audio'), Type.Literal('video')]),
  filename: Type.String({ description: 'As uploaded, made harmless.' }),
  mimeType: Type.String(),
  sizeBytes: Type.Integer({ minimum: 1 }),
  url: Type.String({ description: 'Where it is served, to X-Service-Key and X-Service-Token.' }),
  thumbnailUrl: Type.Optional(Type.String({ description: 'Of images: a JPEG of 200x200 pixels.' })),
  durationMs: Type.Optional(Type.Integer({ minimum: 0, description: 'Of audio and video, where it can be found out: milliseconds.' })),
  width: Type.Optional(Type.Integer({ minimum: 1, description: 'Of images: pixels, upright.' })),
  height: Type.Optional(Type.Integer({ minimum: 1, description: 'Of images: pixels, upright.' })),
});

const CommentSchema = Type.Object({
  id: Type.String(),
  threadId: Type.String(),
  userId: Type.String({ description: 'Author.' }),
  body: Type.String(),
  mentions: Type.Array(Type.String()),
  attachments: Type.Array(AttachmentSchema),
  reactions: Type.Array(ReactionSchema),
  metadata: MetadataSchema,
  createdAt: time('When it was written.'),
  editedAt: timeOrNull('When it was last edited; null until then.'),
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
  resolvedBy: textOrNull('Who resolved it; null while it is open, and when a backend did.'),
};
const ThreadSchema = Type.Object(threadFields);
const ThreadWithCommentsSchema = Type.Object({ ...threadFields, comments: Type.Optional(Type.Array(CommentSchema, { description: 'Only with include=comments.' })) });
const CreatedThreadSchema = Type.Object({ ...threadFields, comments: Type.Array(CommentSchema, { description: 'The first comment.' }) });

const RoomSchema = Type.Object({
  id: Type.String(),
  roomId: Type.String({ description: 'The same as id.' }),
  threadCount: Type.Integer({ minimum: 0 }),
  openThreadCount: Type.Integer({ minimum: 0 }),
  metadata: MetadataSchema,
  createdAt: time('When it was first used.'),
  updatedAt: time('When the room itself last changed.'),
  lastActivityAt: time('When something in it last changed.'),
});

const PresenceSchema = Type.Object({
  userId: Type.String(),
  name: textOrNull('Display name.'),
  avatarUrl: textOrNull('Address of a picture.'),
  connections: Type.Integer({ minimum: 1, description: 'Tabs that are in the room; 1 for 10 s after the last has gone.' }),
  joinedAt: time('When the first tab came.'),
  lastActiveAt: time('When a tab last said something in the room, to 10 s.'),
  state: Type.Record(Type.String(), Type.Unknown(), { description: 'What the client says of itself.' }),
});

const UserSchema = Type.Object({
  id: Type.String(),
  userId: Type.String({ description: 'The same as id.' }),
  name: textOrNull('Display name.'),
  avatarUrl: textOrNull('Address of a picture.'),
  email: Type.Optional(textOrNull('Only towards backends.')),
  kind: Type.Union([Type.Literal('user'), Type.Literal('bot')]),
  metadata: MetadataSchema,
  createdAt: time('When it became known.'),
  updatedAt: time('When it last changed.'),
  firstSeenAt: timeOrNull('When it first connected.'),
  lastSeenAt: timeOrNull('When it was last connected, to the minute.'),
  online: Type.Boolean({ description: 'Whether it is connected now.' }),
  erased: Type.Optional(Type.Literal(true, { description: 'Only in the event that tells of its erasure.' })),
});

const stateFields = {
  roomId: Type.String(),
  version: Type.Integer({ minimum: 0, description: 'Counts every change; 0 for a room that never had a state.' }),
  sizeBytes: Type.Integer({ minimum: 0, description: 'Of the whole state, as bytes.' }),
  updatedAt: timeOrNull('When it was last written; null without state.'),
};
const P2pStateSchema = Type.Object({
  ...stateFields,
  state: textOrNull('The bytes as base64; null without state.'),
  contentType: Type.Literal(P2P_CONTENT_TYPE),
  updatedBy: textOrNull('The user who wrote it; null when a backend did.'),
});
const P2pStateWrittenSchema = Type.Object(stateFields);

const IceServerSchema = Type.Object({
  urls: Type.Array(Type.String()),
  username: Type.Optional(Type.String()),
  credential: Type.Optional(Type.String()),
});
const TurnCredentialsSchema = Type.Object({
  iceServers: Type.Array(IceServerSchema, { description: 'As `RTCPeerConnection` takes them.' }),
  username: textOrNull('Null when the server has no TURN server configured.'),
  password: textOrNull('Null when the server has no TURN server configured.'),
  ttl: Type.Integer({ minimum: 0, description: 'Seconds they are good for; 0 without TURN server.' }),
  uris: Type.Array(Type.String(), { description: 'The TURN servers.' }),
  expiresAt: Type.Optional(time('When they end; absent without TURN server.')),
});

/** The durable events under the names that they have in the OpenAPI document. */
export const namedEvents = eventSchemas({ Thread: ThreadSchema, Comment: CommentSchema, Reaction: ReactionSchema, User: UserSchema });

const ErrorSchema = Type.Object({ error: Type.String({ description: 'Names the field and the bound. The code is in X-Error-Code.' }) });

/** Every other schema that has a name in the OpenAPI document. Where one of these objects is used, the document refers to it. */
export const namedSchemas = {
  Position: PositionSchema,
  Metadata: MetadataSchema,
  Attachment: AttachmentSchema,
  Comment: CommentSchema,
  CommentCreate: CommentCreateSchema,
  CommentPatch: CommentPatchSchema,
  Reaction: ReactionSchema,
  ReactionCreate: ReactionCreateSchema,
  Thread: ThreadSchema,
  ThreadCreate: ThreadCreateSchema,
  ThreadPatch: ThreadPatchSchema,
  CreatedThread: CreatedThreadSchema,
  ThreadWithComments: ThreadWithCommentsSchema,
  Room: RoomSchema,
  RoomPatch: RoomPatchSchema,
  Presence: PresenceSchema,
  User: UserSchema,
  UserPut: UserPutSchema,
  TokenCreate: TokenCreateSchema,
  P2pState: P2pStateSchema,
  P2pStateWritten: P2pStateWrittenSchema,
  P2pStatePut: P2pStatePutSchema,
  IceServer: IceServerSchema,
  TurnCredentials: TurnCredentialsSchema,
  Event: anyEvent(namedEvents),
  Login: LoginSchema,
  AdminSession: AdminSessionSchema,
  Admin: AdminSchema,
  Environment: EnvironmentSchema,
  EnvironmentCreate: EnvironmentCreateSchema,
  EnvironmentPatch: EnvironmentPatchSchema,
  Key: KeySchema,
  NewKey: NewKeySchema,
  KeyCreate: KeyCreateSchema,
  KeyRotate: KeyRotateSchema,
  Error: ErrorSchema,
} as const;

/** `{"items":[…]}` of what a list holds. */
export const listOf = <T extends Parameters<typeof Type.Array>[0]>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    nextCursor: Type.Optional(Type.String({ description: 'Where the list goes on; absent on the last page.' })),
  });

export const deletedSchema = Type.Object({ deleted: Type.Literal(true) });
