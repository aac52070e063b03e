import Type from 'typebox';
import { CommentCreateSchema, CommentPatchSchema } from '../model/comment.ts';
import { eventTypes } from '../model/event.ts';
import { MetadataSchema } from '../model/metadata.ts';
import { PositionSchema, ThreadCreateSchema, ThreadPatchSchema } from '../model/thread.ts';
import { TokenCreateSchema } from '../model/token.ts';
import { UserPutSchema } from '../model/user.ts';

const time = (description: string) => Type.String({ format: 'date-time', description: `${description} ISO 8601, UTC, with milliseconds.` });
const timeOrNull = (description: string) => Type.Union([time(description), Type.Null()]);
const textOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });
const coordinate = () => Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()], { description: 'Null for a thread without position.' });

const CommentSchema = Type.Object({
  id: Type.String(),
  threadId: Type.String(),
  userId: Type.String({ description: 'Author.' }),
  body: Type.String(),
  mentions: Type.Array(Type.String()),
  attachments: Type.Array(Type.Unknown()),
  reactions: Type.Array(Type.Unknown()),
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
const CreatedThreadSchema = Type.Object({
  id: Type.String(),
  roomId: Type.String(),
  resolved: Type.Boolean(),
  position: Type.Union([PositionSchema, Type.Null()]),
  comments: Type.Array(CommentSchema, { description: 'The first comment.' }),
  createdAt: time('When it was created.'),
});

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
});

const EventSchema = Type.Object({
  type: Type.Union(eventTypes.map((type) => Type.Literal(type))),
  seq: Type.Integer({ minimum: 1, description: 'Position in the log of the environment.' }),
  eventId: Type.String(),
  at: time('When it happened.'),
  roomId: Type.Optional(Type.String()),
  threadId: Type.Optional(Type.String()),
  actor: Type.Object({
    userId: textOrNull('Null when a backend acted for nobody.'),
    via: Type.Union([Type.Literal('rest'), Type.Literal('ws'), Type.Literal('cli')]),
  }),
  data: Type.Unknown({ description: 'The thread, comment or user as the API shows it; ids alone after a delete.' }),
});

const ErrorSchema = Type.Object({ error: Type.String({ description: 'Names the field and the bound. The code is in X-Error-Code.' }) });

/** Every schema that has a name in the OpenAPI document. Where one of these objects is used, the document refers to it. */
export const namedSchemas = {
  Position: PositionSchema,
  Metadata: MetadataSchema,
  Comment: CommentSchema,
  CommentCreate: CommentCreateSchema,
  CommentPatch: CommentPatchSchema,
  Thread: ThreadSchema,
  ThreadCreate: ThreadCreateSchema,
  ThreadPatch: ThreadPatchSchema,
  CreatedThread: CreatedThreadSchema,
  ThreadWithComments: ThreadWithCommentsSchema,
  Room: RoomSchema,
  User: UserSchema,
  UserPut: UserPutSchema,
  TokenCreate: TokenCreateSchema,
  Event: EventSchema,
  Error: ErrorSchema,
} as const;

/** `{"items":[…]}` of what a list holds. */
export const listOf = <T extends Parameters<typeof Type.Array>[0]>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    nextCursor: Type.Optional(Type.String({ description: 'Where the list goes on; absent on the last page.' })),
  });

export const deletedSchema = Type.Object({ deleted: Type.Literal(true) });
