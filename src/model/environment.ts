import Type, { type Static } from 'typebox';
import { defaultLimits, type Limits, MAX_JSON_BODY_BYTES } from './limits.ts';
import { defaultQuotas, type Quotas, QuotasPatchSchema } from './quotas.ts';

export type MediaType = 'image' | 'audio' | 'video';

export type CrdtKind = 'opaque' | 'yjs';

/** A tenant: everything stored belongs to exactly one environment. */
export interface Environment {
  readonly id: string;
  /** Names the stream of its events; absent where the id does, in environments that were made before streams had names. */
  readonly streamId?: string;
  readonly slug: string;
  readonly name: string;
  readonly disabled: boolean;
  readonly settings: EnvironmentSettings;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface EnvironmentSettings {
  /** Whether an author must be known before writing; otherwise the write makes the user. */
  readonly requireKnownUsers: boolean;
  /** Exact origins that browsers may connect from; empty means any. */
  readonly allowedOrigins: readonly string[];
  readonly maxFileSizeMb: number;
  readonly media: Readonly<Record<MediaType, boolean>>;
  /** Largest shared state of a room, in megabytes. */
  readonly maxP2pStateMb: number;
  /** What shared states are: bytes that a PUT replaces, or Yjs documents that it is merged into. */
  readonly crdt: CrdtKind;
  /** Longest `exp - iat` of a user token, in seconds. */
  readonly jwtMaxLifetime: number;
  /** Required `iss` of user tokens, where set. */
  readonly jwtIssuer: string | null;
  /** Overrides of the default limits. */
  readonly limits: Partial<Limits>;
  /** Overrides of the default quotas. */
  readonly quotas: Partial<Quotas>;
}

export const defaultSettings: EnvironmentSettings = {
  requireKnownUsers: true,
  allowedOrigins: [],
  maxFileSizeMb: 10,
  media: { image: true, audio: true, video: true },
  maxP2pStateMb: 10,
  crdt: 'opaque',
  jwtMaxLifetime: 24 * 3600,
  jwtIssuer: null,
  limits: {},
  quotas: {},
};

const limitOverride = () => Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 }));

/** What an operator may change of an environment; what is absent stays. */
export const EnvironmentPatchSchema = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: 'What people call it.' })),
  disabled: Type.Optional(Type.Boolean({ description: 'Refuses every credential while true.' })),
  settings: Type.Optional(
    Type.Object({
      requireKnownUsers: Type.Optional(Type.Boolean()),
      allowedOrigins: Type.Optional(Type.Array(Type.String(), { maxItems: 100 })),
      maxFileSizeMb: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_240 })),
      media: Type.Optional(
        Type.Object({
          image: Type.Optional(Type.Boolean()),
          audio: Type.Optional(Type.Boolean()),
          video: Type.Optional(Type.Boolean()),
        }),
      ),
      maxP2pStateMb: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
      crdt: Type.Optional(Type.Union([Type.Literal('opaque'), Type.Literal('yjs')])),
      jwtMaxLifetime: Type.Optional(Type.Integer({ minimum: 60, maximum: 31_536_000 })),
      jwtIssuer: Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 512 }), Type.Null()])),
      limits: Type.Optional(
        Type.Object({
          bodyLength: limitOverride(),
          mentions: limitOverride(),
          attachments: limitOverride(),
          idLength: Type.Optional(Type.Integer({ minimum: 1, maximum: 128 })),
          selectorLength: limitOverride(),
          metadataKeys: limitOverride(),
          metadataKeyLength: limitOverride(),
          metadataValueLength: limitOverride(),
          commentsPerThread: limitOverride(),
          emojiPerComment: limitOverride(),
          reactionsPerComment: limitOverride(),
          listHardCap: limitOverride(),
          jsonBodyBytes: Type.Optional(Type.Integer({ minimum: 1_024, maximum: MAX_JSON_BODY_BYTES })),
        }),
      ),
      quotas: Type.Optional(QuotasPatchSchema),
    }),
  ),
});

export type EnvironmentPatch = Static<typeof EnvironmentPatchSchema>;

export const EnvironmentCreateSchema = Type.Object({
  slug: Type.String({ minLength: 1, maxLength: 63, description: 'Lower-case letters, digits and inner hyphens; no other environment may have it.' }),
  name: EnvironmentPatchSchema.properties.name,
});

/** A stored environment. Settings that it was made before have their defaults. */
export function parseEnvironment(text: string): Environment {
  const environment = JSON.parse(text) as Environment;
  return { ...environment, settings: { ...defaultSettings, ...environment.settings } };
}

const mergedLimits = new WeakMap<Environment, Limits>();

/** The bounds that hold in an environment: the defaults under its own. */
export function limitsOf(environment: Environment): Limits {
  let limits = mergedLimits.get(environment);
  if (limits === undefined) {
    limits = { ...defaultLimits, ...environment.settings.limits };
    mergedLimits.set(environment, limits);
  }
  return limits;
}

const mergedQuotas = new WeakMap<Environment, Quotas>();

/** The quotas that hold in an environment: the defaults under its own. */
export function quotasOf(environment: Environment): Quotas {
  let quotas = mergedQuotas.get(environment);
  if (quotas === undefined) {
    quotas = { ...defaultQuotas, ...environment.settings.quotas };
    mergedQuotas.set(environment, quotas);
  }
  return quotas;
}

/** Slugs: 1 to 63 lower-case letters, digits and inner hyphens, as in a DNS label. */
export const SLUG_PATTERN = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
