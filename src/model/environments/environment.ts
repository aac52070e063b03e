import * as Type from 'typebox';
import type { Static } from 'typebox';
import { defaultLimits, type Limits, MAX_JSON_BODY_BYTES } from './limits.ts';
import { defaultQuotas, type Quotas, QuotasPatchSchema } from './quotas.ts';

/** A kind of file. */
export type MediaKind = 'image' | 'audio' | 'video';

/** How the server treats shared states: as opaque bytes or as Yjs documents. */
export type CrdtKind = 'opaque' | 'yjs';

/** A tenant. All content belongs to exactly one environment. */
export interface Environment {
  readonly id: string;
  /** The name of its event stream; absent in environments from before streams had names, where the id is the name. */
  readonly streamId?: string;
  readonly slug: string;
  readonly name: string;
  readonly disabled: boolean;
  readonly settings: EnvironmentSettings;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The settings of an environment. */
export interface EnvironmentSettings {
  /** Whether an author must exist before a backend writes for them; otherwise the write creates the user. */
  readonly requireKnownUsers: boolean;
  /**
   * Whether a name in a query or a JSON body that is a near miss of a known one is refused, instead of answered with a
   * hint.
   */
  readonly strict: boolean;
  /** Exact origins that browsers may connect from; any if empty. */
  readonly allowedOrigins: readonly string[];
  readonly maxFileSizeMb: number;
  readonly media: Readonly<Record<MediaKind, boolean>>;
  /** The maximum size of the shared state of a room, in megabytes. */
  readonly maxP2pStateMb: number;
  /** Whether a PUT of a shared state replaces its bytes, or is merged into a Yjs document. */
  readonly crdt: CrdtKind;
  /** The maximum `exp - iat` of a user token, in seconds. */
  readonly jwtMaxLifetime: number;
  /** The `iss` that user tokens must have; null for any. */
  readonly jwtIssuer: string | null;
  /** Overrides of the default limits. */
  readonly limits: Partial<Limits>;
  /** Overrides of the default quotas. */
  readonly quotas: Partial<Quotas>;
}

/** The bounds of `jwtMaxLifetime`, in seconds. */
export const TOKEN_LIFETIME = { min: 60, max: 365 * 86_400 } as const;

/** The settings of a new environment. */
export const defaultSettings: EnvironmentSettings = {
  requireKnownUsers: true,
  strict: false,
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

/** The fields of an environment that an operator can change; absent fields are not changed. */
export const EnvironmentPatchSchema = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: 'Display name.' })),
  disabled: Type.Optional(Type.Boolean({ description: 'Refuses every credential while true.' })),
  settings: Type.Optional(
    Type.Object({
      requireKnownUsers: Type.Optional(Type.Boolean()),
      strict: Type.Optional(Type.Boolean()),
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
      jwtMaxLifetime: Type.Optional(Type.Integer({ minimum: TOKEN_LIFETIME.min, maximum: TOKEN_LIFETIME.max })),
      jwtIssuer: Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 512 }), Type.Null()])),
      limits: Type.Optional(
        Type.Object({
          bodyLength: limitOverride(),
          mentions: limitOverride(),
          attachments: limitOverride(),
          idLength: Type.Optional(Type.Integer({ minimum: 1, maximum: 128 })),
          roomIdLength: Type.Optional(Type.Integer({ minimum: 1, maximum: 512 })),
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

/** The body of a create-environment request. */
export const EnvironmentCreateSchema = Type.Object({
  slug: Type.String({
    minLength: 1,
    maxLength: 63,
    description: 'Lower-case letters, digits and inner hyphens; unique among the environments.',
  }),
  name: EnvironmentPatchSchema.properties.name,
});

/** Parses a stored environment. Settings that are newer than the record get their defaults. */
export function parseEnvironment(text: string): Environment {
  const environment = JSON.parse(text) as Environment;
  return { ...environment, settings: { ...defaultSettings, ...environment.settings } };
}

/**
 * Returns a function that computes the result for each environment object once: settings are merged for every request.
 */
function oncePerEnvironment<T>(compute: (environment: Environment) => T): (environment: Environment) => T {
  const results = new WeakMap<Environment, T>();
  return (environment) => {
    let result = results.get(environment);
    if (result === undefined) {
      result = compute(environment);
      results.set(environment, result);
    }
    return result;
  };
}

/** The limits of an environment: the defaults, with its overrides. */
export const limitsOf = oncePerEnvironment(({ settings }): Limits => ({ ...defaultLimits, ...settings.limits }));

/** The quotas of an environment: the defaults, with its overrides. */
export const quotasOf = oncePerEnvironment(({ settings }): Quotas => ({ ...defaultQuotas, ...settings.quotas }));

/** Slugs: 1 to 63 lower-case letters, digits and inner hyphens, as in a DNS label. */
export const SLUG_PATTERN = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
