import * as Type from 'typebox';
import type { Static } from 'typebox';

/** Permissions of a secret key. */
export type KeyScope = 'full' | 'read' | 'moderate';

interface KeyCommon {
  readonly id: string;
  readonly environmentId: string;
  readonly name: string;
  /** The first characters of the key, enough to recognise it in a list. */
  readonly preview: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
}

/** A key for a backend. Its value is shown once; the store has only the SHA-256 of it. */
export interface SecretKey extends KeyCommon {
  readonly kind: 'secret';
  readonly scope: KeyScope;
  /** The room id or `prefix*` that it is confined to; null for all rooms. */
  readonly rooms: string | null;
  /** Requests per minute counted for the key instead of the address; null counts the address, 0 is unlimited. */
  readonly rateLimit: number | null;
}

/** A key for web pages. It is public: it only identifies the environment, and a user token is needed too. */
export interface PublishableKey extends KeyCommon {
  readonly kind: 'publishable';
  readonly value: string;
}

/** A key of an environment, without the hash of its value. */
export type ApiKey = SecretKey | PublishableKey;

/** A key with the time of its last use, precise to the minute; null if it was never used. */
export type ListedKey = ApiKey & { readonly lastUsedAt: string | null };

/** A new key and its value, which is shown only once. */
export interface NewKey {
  readonly key: ApiKey;
  readonly value: string;
}

/** The maximum rate limit of a key, in requests per minute; beyond it there is only `unlimited`. */
export const MAX_KEY_RATE_LIMIT = 1_000_000;

/** The longest lifetime of a key, and overlap of a rotation, in seconds: ten years. */
export const MAX_KEY_SECONDS = 10 * 365 * 86_400;

/** The body of a create-key request. */
export const KeyCreateSchema = Type.Object({
  kind: Type.Union([Type.Literal('secret'), Type.Literal('publishable')], {
    description: '`secret` for a backend, `publishable` for web pages.',
  }),
  name: Type.Optional(Type.String({ maxLength: 128, description: 'A name to recognise the key by.' })),
  scope: Type.Optional(
    Type.Union([Type.Literal('full'), Type.Literal('read'), Type.Literal('moderate')], {
      description: 'Of secret keys: `full` by default; `moderate` may read, resolve, edit and delete.',
    }),
  ),
  rooms: Type.Optional(
    Type.Union([Type.String({ minLength: 1, maxLength: 513 }), Type.Null()], {
      description:
        'Of secret keys: the room, or `prefix*`, that the key is confined to; all rooms when absent or null.',
    }),
  ),
  expiresInSeconds: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: MAX_KEY_SECONDS }), Type.Null()], {
      description: 'Lifetime in seconds, at most ten years; unlimited when absent or null.',
    }),
  ),
  rateLimit: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: MAX_KEY_RATE_LIMIT }), Type.Literal('unlimited'), Type.Null()], {
      description:
        'Of secret keys: requests per minute counted for the key; `unlimited` for no limit; counted for the address when absent or null.',
    }),
  ),
});
export type KeyCreate = Static<typeof KeyCreateSchema>;

/** The body of a rotate-key request. */
export const KeyRotateSchema = Type.Object({
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_KEY_SECONDS,
      default: 86_400,
      description: 'Seconds that the old key still works: one day by default, 0 to end it immediately.',
    }),
  ),
});
export type KeyRotate = Static<typeof KeyRotateSchema>;

/** A key as stored. */
export type StoredKey = ApiKey & {
  /** SHA-256 of the value, base64url, by which the key is found. */
  readonly hash: string;
};

/** The index entry of the hash of a key. It repeats `expiresAt`, so that it changes whenever the key does. */
export interface KeyPointer {
  readonly environmentId: string;
  readonly keyId: string;
  readonly expiresAt: string | null;
}

/** A signature algorithm of user tokens. */
export type SigningAlgorithm = 'HS256' | 'RS256' | 'PS256' | 'ES256' | 'EdDSA';

/** A key that verifies the user tokens of an environment. */
export type SigningKey =
  | {
      readonly kid: string;
      readonly kind: 'secret';
      readonly alg: 'HS256';
      readonly secret: string;
      readonly createdAt: string;
    }
  | {
      readonly kid: string;
      readonly kind: 'public';
      readonly alg: Exclude<SigningAlgorithm, 'HS256'>;
      readonly key: string;
      readonly createdAt: string;
    }
  | {
      readonly kid: string;
      readonly kind: 'jwks';
      readonly alg: Exclude<SigningAlgorithm, 'HS256'>;
      readonly url: string;
      readonly createdAt: string;
    };
