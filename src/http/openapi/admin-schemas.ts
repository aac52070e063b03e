import Type from 'typebox';

const time = (description: string) => Type.String({ format: 'date-time', description });
const timeOrNull = (description: string) => Type.Union([time(description), Type.Null()]);

export const AdminSchema = Type.Object({
  id: Type.String(),
  email: Type.String(),
  role: Type.Literal('admin'),
  createdAt: time('When it was made.'),
});

export const AdminSessionSchema = Type.Object({
  token: Type.String({ pattern: '^adm_[A-Za-z0-9_-]{43}$', description: 'Shown this once. Valid on /admin/* only.' }),
  expiresAt: time('When it ends at the latest: 12 hours from now. It ends sooner after 2 hours without use.'),
  admin: AdminSchema,
});

export const EnvironmentSchema = Type.Object({
  id: Type.String(),
  streamId: Type.Optional(Type.String({ description: 'Names the stream of its events, and is a part of the epoch that clients see. An import gives another.' })),
  slug: Type.String(),
  name: Type.String(),
  disabled: Type.Boolean({ description: 'Refuses every credential while true.' }),
  settings: Type.Object({
    requireKnownUsers: Type.Boolean({ description: 'Whether an author must be known before writing.' }),
    allowedOrigins: Type.Array(Type.String(), { description: 'Origins that browsers may come from; any when empty.' }),
    maxFileSizeMb: Type.Integer({ description: 'Largest upload in megabytes.' }),
    media: Type.Object({ image: Type.Boolean(), audio: Type.Boolean(), video: Type.Boolean() }, { description: 'Which media types may be uploaded.' }),
    maxP2pStateMb: Type.Integer({ description: 'Largest shared state of a room in megabytes.' }),
    crdt: Type.Union([Type.Literal('opaque'), Type.Literal('yjs')], { description: 'What a write of shared state does: replaces it, or merges a Yjs update.' }),
    jwtMaxLifetime: Type.Integer({ description: 'Longest life of a user token in seconds.' }),
    jwtIssuer: Type.Union([Type.String(), Type.Null()], { description: 'Issuer that user tokens must name; null for any.' }),
    limits: Type.Record(Type.String(), Type.Integer(), { description: 'Bounds of what callers may send, where they are not the default.' }),
    quotas: Type.Record(Type.String(), Type.Union([Type.Integer(), Type.Null()]), { description: 'How much may be stored and written, where that is not the default; null for no bound.' }),
  }),
  createdAt: time('When it was made.'),
  updatedAt: time('When it last changed.'),
});

const keyFields = {
  id: Type.String(),
  kind: Type.Union([Type.Literal('secret'), Type.Literal('publishable')]),
};
const secretKeyFields = {
  scope: Type.Optional(Type.Union([Type.Literal('full'), Type.Literal('read'), Type.Literal('moderate')])),
  rooms: Type.Optional(Type.Union([Type.String(), Type.Null()], { description: 'Room, or `prefix*`, that it is confined to; null for all.' })),
  rateLimit: Type.Optional(
    Type.Union([Type.Integer(), Type.Literal('unlimited'), Type.Null()], { description: 'Requests a minute counted on the key; null when the address is counted.' }),
  ),
};

export const KeySchema = Type.Object(
  {
    ...keyFields,
    name: Type.String(),
    preview: Type.String({ description: 'Enough of the value to recognise it.' }),
    ...secretKeyFields,
    publishableKey: Type.Optional(Type.String({ description: 'The value, which is no secret.' })),
    state: Type.Union([Type.Literal('active'), Type.Literal('expired'), Type.Literal('revoked')]),
    createdAt: time('When it was made.'),
    expiresAt: timeOrNull('When it ends; null for never.'),
    revokedAt: timeOrNull('When it was revoked; null while it is not.'),
    lastUsedAt: timeOrNull('When it was last used, to the minute and some seconds late; null for never.'),
  },
  { description: 'A key. The value of a secret one is not known to the server.' },
);

export const NewKeySchema = Type.Object(
  {
    ...keyFields,
    secretKey: Type.Optional(Type.String({ description: 'The value of a secret key, shown this once.' })),
    publishableKey: Type.Optional(Type.String({ description: 'The value of a publishable key.' })),
    environmentId: Type.String(),
    name: Type.String(),
    createdAt: time('When it was made.'),
    expiresAt: timeOrNull('When it ends; null for never.'),
    ...secretKeyFields,
  },
  { description: 'A key just made, with its value.' },
);
