import * as Type from 'typebox';
import type { KeyView, NewKeyView } from '../../domain/access/key-view.ts';
import type { OpenedSession } from '../../domain/admins/admin-sessions.ts';
import type { Admin } from '../../model/environments/admin.ts';
import type { AuditRecord } from '../../model/environments/audit.ts';
import type { Environment, EnvironmentSettings } from '../../model/environments/environment.ts';
import { dateTime } from './field-schemas.ts';
import { schemaOf } from './schema-of.ts';

const timeOrNull = (description: string) => Type.Union([dateTime(description), Type.Null()]);

/** The environment as it is sent. New limits and quotas are not new fields of the API. */
type SentEnvironment = Omit<Environment, 'settings'> & {
  readonly settings: Omit<EnvironmentSettings, 'limits' | 'quotas'> & {
    readonly limits: Readonly<Record<string, number>>;
    readonly quotas: Readonly<Record<string, number | null>>;
  };
};

export const AdminSchema = schemaOf<Admin>()(
  Type.Object({
    id: Type.String(),
    email: Type.String(),
    role: Type.Literal('admin'),
    createdAt: dateTime('Time of creation.'),
  }),
);

export const AdminSessionSchema = schemaOf<OpenedSession>()(
  Type.Object({
    token: Type.String({
      pattern: '^adm_[A-Za-z0-9_-]{43}$',
      description: 'Returned only here. Valid on /admin/* only.',
    }),
    expiresAt: dateTime('The latest end of the session: 12 hours from now. It ends earlier after 2 hours without use.'),
    admin: AdminSchema,
  }),
);

export const EnvironmentSchema = schemaOf<SentEnvironment>()(
  Type.Object({
    id: Type.String(),
    streamId: Type.Optional(
      Type.String({
        description:
          'Identifies its event stream, and is part of the epoch that clients see. An import assigns a new one.',
      }),
    ),
    slug: Type.String(),
    name: Type.String(),
    disabled: Type.Boolean({ description: 'While true, every credential is refused.' }),
    settings: Type.Object({
      requireKnownUsers: Type.Boolean({ description: 'Whether an author must be a known user.' }),
      strict: Type.Boolean({
        description:
          'Whether a misspelled field or parameter is refused with 400. Otherwise it is ignored, and ' +
          '`Collab-Hint` names the one that is meant.',
      }),
      allowedOrigins: Type.Array(Type.String(), {
        description: 'Origins whose pages may use the environment; any when empty.',
      }),
      maxFileSizeMb: Type.Integer({ description: 'Largest upload in megabytes.' }),
      media: Type.Object(
        { image: Type.Boolean(), audio: Type.Boolean(), video: Type.Boolean() },
        { description: 'Which media types may be uploaded.' },
      ),
      maxP2pStateMb: Type.Integer({ description: 'Largest shared state of a room in megabytes.' }),
      crdt: Type.Union([Type.Literal('opaque'), Type.Literal('yjs')], {
        description: 'Whether a write replaces the shared state (`opaque`) or merges a Yjs update into it (`yjs`).',
      }),
      jwtMaxLifetime: Type.Integer({ description: 'Longest lifetime of a user token in seconds.' }),
      jwtIssuer: Type.Union([Type.String(), Type.Null()], {
        description: 'The issuer that user tokens must have; null for any.',
      }),
      limits: Type.Record(Type.String(), Type.Integer(), {
        description: 'Limits on what clients may send, where they differ from the default.',
      }),
      quotas: Type.Record(Type.String(), Type.Union([Type.Integer(), Type.Null()]), {
        description:
          'Limits on what may be stored and written, where they differ from the default; null for unlimited.',
      }),
    }),
    createdAt: dateTime('Time of creation.'),
    updatedAt: dateTime('Time of the last change.'),
  }),
);

const keyFields = {
  id: Type.String(),
  kind: Type.Union([Type.Literal('secret'), Type.Literal('publishable')]),
};
const secretKeyFields = {
  scope: Type.Optional(Type.Union([Type.Literal('full'), Type.Literal('read'), Type.Literal('moderate')])),
  rooms: Type.Optional(
    Type.Union([Type.String(), Type.Null()], {
      description: 'The room, or `prefix*`, that the key is confined to; null for all rooms.',
    }),
  ),
  rateLimit: Type.Optional(
    Type.Union([Type.Integer(), Type.Literal('unlimited'), Type.Null()], {
      description: 'Requests per minute, counted per key; null if requests are counted per address.',
    }),
  ),
};

export const KeySchema = schemaOf<KeyView>()(
  Type.Object(
    {
      ...keyFields,
      name: Type.String(),
      preview: Type.String({ description: 'The beginning of the value, by which the key can be recognised.' }),
      ...secretKeyFields,
      publishableKey: Type.Optional(Type.String({ description: 'The value, which is not secret.' })),
      state: Type.Union([Type.Literal('active'), Type.Literal('expired'), Type.Literal('revoked')]),
      createdAt: dateTime('Time of creation.'),
      expiresAt: timeOrNull('When the key expires; null for never.'),
      revokedAt: timeOrNull('When the key was revoked; null if it was not.'),
      lastUsedAt: timeOrNull(
        'When the key was last used, to the minute, updated with a delay of some seconds; null for never.',
      ),
    },
    { description: 'A key. The server does not know the value of a secret key.' },
  ),
);

export const NewKeySchema = schemaOf<NewKeyView>()(
  Type.Object(
    {
      ...keyFields,
      secretKey: Type.Optional(Type.String({ description: 'The value of a secret key, returned only here.' })),
      publishableKey: Type.Optional(Type.String({ description: 'The value of a publishable key.' })),
      environmentId: Type.String(),
      name: Type.String(),
      createdAt: dateTime('Time of creation.'),
      expiresAt: timeOrNull('When the key expires; null for never.'),
      ...secretKeyFields,
    },
    { description: 'A new key, with its value.' },
  ),
);

/** The audit record as it is sent. New actions and targets are not new fields of the API. */
type SentAuditRecord = Omit<AuditRecord, 'action' | 'target'> & {
  readonly action: string;
  readonly target: { readonly kind: string; readonly id: string };
};

export const AuditRecordSchema = schemaOf<SentAuditRecord>()(
  Type.Object({
    seq: Type.Integer({ minimum: 1, description: 'Position in its log, without gaps.' }),
    at: dateTime('Time of the act.'),
    actor: Type.Object({
      kind: Type.Union([
        Type.Literal('admin'),
        Type.Literal('key'),
        Type.Literal('user'),
        Type.Literal('cli'),
        Type.Literal('system'),
      ]),
      id: Type.Union([Type.String(), Type.Null()], {
        description: 'Id of the admin, key or user, or the name of the operating system’s user; null for the server.',
      }),
    }),
    action: Type.String({ description: 'docs/audit.md lists the actions.' }),
    target: Type.Object({ kind: Type.String(), id: Type.String() }),
    details: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()])),
    prev: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Hash of the record before it.' }),
    hash: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'SHA-256 of the record without this field, as canonical JSON.',
    }),
  }),
);
