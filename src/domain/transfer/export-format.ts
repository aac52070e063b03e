import * as Type from 'typebox';
import type { Static } from 'typebox';
import { ID_PATTERN } from '../../model/id.ts';
import type { EnvironmentSettings } from '../../model/environments/environment.ts';
import { MetadataSchema } from '../../model/metadata.ts';
import { PositionSchema } from '../../model/thread.ts';
import { InputSchema } from '../input/validate.ts';

/** The version of the export format (docs/export-format.md). */
export const EXPORT_FORMAT = 1;
/** Bytes of a file per line. */
export const CHUNK_BYTES = 192 * 1024;

const id = () => Type.String({ pattern: ID_PATTERN.source, description: 'an id of 1 to 64 of A–Z a–z 0–9 _ -' });
/** Ids of users and rooms are any text. */
const freeUserId = () => Type.String({ minLength: 1, maxLength: 128 });
const freeRoomId = () => Type.String({ minLength: 1, maxLength: 512 });
const time = () =>
  Type.String({
    pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
    description: 'a time such as 2026-01-02T03:04:05.678Z',
  });
const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);
const whole = () => Type.Integer({ minimum: 0 });

// Like an older store, an older export lacks the settings of later versions.
const Settings = Type.Unsafe<EnvironmentSettings>(
  Type.Object({
    requireKnownUsers: Type.Boolean(),
    allowedOrigins: Type.Array(Type.String()),
    maxFileSizeMb: Type.Integer({ minimum: 1 }),
    media: Type.Object({ image: Type.Boolean(), audio: Type.Boolean(), video: Type.Boolean() }),
    jwtMaxLifetime: Type.Integer({ minimum: 60 }),
    jwtIssuer: orNull(Type.String()),
    limits: Type.Record(Type.String(), Type.Integer({ minimum: 1 })),
    quotas: Type.Optional(Type.Record(Type.String(), orNull(Type.Integer({ minimum: 1 })))),
  }),
);
const Attachment = Type.Object({
  id: id(),
  type: Type.String(),
  filename: Type.String(),
  mimeType: Type.String(),
  sizeBytes: whole(),
  url: Type.String(),
});
const Reaction = Type.Object({
  id: Type.String(),
  reactionId: Type.String(),
  commentId: id(),
  threadId: id(),
  userId: freeUserId(),
  emoji: Type.String(),
  createdAt: time(),
});

const Thread = Type.Object({
  id: id(),
  roomId: freeRoomId(),
  resolved: Type.Boolean(),
  position: orNull(PositionSchema),
  metadata: MetadataSchema,
  userId: freeUserId(),
  createdAt: time(),
  updatedAt: time(),
  resolvedAt: orNull(time()),
  resolvedBy: orNull(freeUserId()),
});
const Comment = Type.Object({
  id: id(),
  threadId: id(),
  userId: freeUserId(),
  body: Type.String(),
  mentions: Type.Array(Type.String()),
  attachments: Type.Array(Attachment),
  reactions: Type.Array(Reaction),
  metadata: MetadataSchema,
  createdAt: time(),
  editedAt: orNull(time()),
});

const Report = Type.Object({
  commentId: id(),
  userId: orNull(freeUserId()),
  reason: Type.String({ minLength: 1, maxLength: 1_000 }),
  body: Type.Optional(Type.String()),
  createdAt: time(),
});

/** The fields of each type of line, in the order of the lines. Other fields of `data` are kept. */
export const lineSchemas = {
  export: Type.Object({ format: Type.Integer({ minimum: 1 }) }),
  environment: Type.Object({
    data: Type.Object({
      id: id(),
      slug: Type.String(),
      name: Type.String(),
      disabled: Type.Boolean(),
      settings: Settings,
      createdAt: time(),
      updatedAt: time(),
    }),
  }),
  'signing-key': Type.Object({
    data: Type.Object({
      kid: Type.String({ pattern: '^[\\x21-\\x7e]{1,128}$' }),
      kind: Type.String(),
      alg: Type.String(),
      createdAt: time(),
    }),
  }),
  key: Type.Object({
    data: Type.Object({
      id: id(),
      environmentId: id(),
      kind: Type.String(),
      hash: id(),
      name: Type.String(),
      preview: Type.String(),
      createdAt: time(),
      expiresAt: orNull(time()),
      revokedAt: orNull(time()),
    }),
  }),
  user: Type.Object({
    data: Type.Object({
      id: freeUserId(),
      userId: freeUserId(),
      name: orNull(Type.String()),
      avatarUrl: orNull(Type.String()),
      email: orNull(Type.String()),
      kind: Type.String(),
      metadata: MetadataSchema,
      createdAt: time(),
      updatedAt: time(),
      firstSeenAt: orNull(time()),
      lastSeenAt: orNull(time()),
      tokenScope: Type.Optional(
        Type.Object({
          rooms: orNull(Type.Array(Type.String({ minLength: 1, maxLength: 513 }))),
          issuedAt: time(),
          confinedKeyId: Type.Optional(Type.String({ maxLength: 64 })),
        }),
      ),
      setAt: Type.Optional(Type.Record(Type.String({ maxLength: 20 }), time())),
    }),
  }),
  file: Type.Object({
    data: Type.Object({
      attachment: Attachment,
      uploadedBy: freeUserId(),
      commentId: orNull(id()),
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
      createdAt: time(),
    }),
  }),
  chunk: Type.Object({ data: Type.String() }),
  state: Type.Object({
    roomId: freeRoomId(),
    data: Type.Object({
      version: whole(),
      sizeBytes: whole(),
      digest: Type.String(),
      merges: whole(),
      updatedAt: orNull(time()),
      updatedBy: orNull(freeUserId()),
    }),
    bytes: orNull(Type.String()),
  }),
  'moderation-item': Type.Object({
    data: Type.Object({
      id: id(),
      kind: Type.Union([Type.Literal('comment'), Type.Literal('thread'), Type.Literal('edit'), Type.Literal('report')]),
      state: Type.Union([Type.Literal('held'), Type.Literal('reported')]),
      roomId: freeRoomId(),
      threadId: id(),
      commentId: id(),
      userId: freeUserId(),
      plugin: orNull(Type.String()),
      reason: orNull(Type.String()),
      comment: orNull(Comment),
      thread: orNull(Thread),
      keyId: orNull(Type.String()),
      via: Type.Union([Type.Literal('rest'), Type.Literal('ws'), Type.Literal('cli')]),
      reports: whole(),
      keptReports: Type.Optional(Type.Array(Report)),
      createdAt: time(),
      decidedAt: Type.Null(),
      decidedBy: Type.Null(),
      rejection: Type.Null(),
    }),
  }),
  report: Type.Object({
    data: Report,
    reporter: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
  }),
  room: Type.Object({
    data: Type.Object({ roomId: freeRoomId(), metadata: MetadataSchema, createdAt: time(), updatedAt: time() }),
    lastActivityAt: time(),
  }),
  thread: Type.Object({
    data: Thread,
    lastActivityAt: time(),
  }),
  comment: Type.Object({
    data: Comment,
    chosenId: Type.Optional(Type.Boolean()),
  }),
  'notification-settings': Type.Object({ userId: freeUserId(), data: Type.Record(Type.String(), Type.Unknown()) }),
  subscription: Type.Object({
    threadId: id(),
    userId: freeUserId(),
    data: Type.Object({
      state: Type.Union([Type.Literal('subscribed'), Type.Literal('unsubscribed'), Type.Literal('muted')]),
      at: time(),
    }),
  }),
  notification: Type.Object({
    data: Type.Object({
      id: id(),
      userId: freeUserId(),
      kind: Type.Union([Type.Literal('mention'), Type.Literal('reply')]),
      roomId: freeRoomId(),
      threadId: id(),
      commentId: id(),
      actorId: freeUserId(),
      readAt: orNull(time()),
      createdAt: time(),
      updatedAt: time(),
    }),
    inApp: Type.Boolean(),
  }),
  end: Type.Object({ lines: whole() }),
} as const;

/** The type of a line. */
export type LineType = keyof typeof lineSchemas;
/** The fields of a line besides its type. */
export type LineOf<T extends LineType> = Static<(typeof lineSchemas)[T]>;
/** A line that has passed its schema. */
export type ExportLine<T extends LineType = LineType> = { [K in T]: { readonly type: K } & LineOf<K> }[T];
/** A line that gives records. */
export type RecordLine = ExportLine<
  | 'signing-key'
  | 'user'
  | 'file'
  | 'state'
  | 'moderation-item'
  | 'report'
  | 'room'
  | 'thread'
  | 'comment'
  | 'notification-settings'
  | 'subscription'
  | 'notification'
>;
/** A line of an environment between its first and its last. */
export type ContentLine = RecordLine | ExportLine<'key' | 'chunk'>;

const inputs = new Map(
  Object.entries(lineSchemas).map(([type, schema]) => [type, new InputSchema(schema, { allowsMalformedText: true })]),
);

/** The schema of a type of line; undefined for an unknown type. */
export function lineInput(type: string): InputSchema<(typeof lineSchemas)[LineType]> | undefined {
  return inputs.get(type);
}
