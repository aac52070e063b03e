import Type, { type Static } from 'typebox';

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

/** A backend's key. The key itself is shown once; the store holds its SHA-256 alone. */
export interface SecretKey extends KeyCommon {
  readonly kind: 'secret';
  readonly scope: KeyScope;
  /** Room id or `prefix*` that it is confined to; null for all. */
  readonly rooms: string | null;
  /** Requests a minute counted on the key instead of on the address; null counts the address, 0 is unlimited. */
  readonly rateLimit: number | null;
}

/** A page's key. Public: it only names the environment, a user token must come with it. */
export interface PublishableKey extends KeyCommon {
  readonly kind: 'publishable';
  readonly value: string;
}

export type ApiKey = SecretKey | PublishableKey;

/** A key with when it was last used, to the minute; null for never. */
export type ListedKey = ApiKey & { readonly lastUsedAt: string | null };

/** A key and its value, which is shown this once. */
export interface NewKey {
  readonly key: ApiKey;
  readonly value: string;
}

/** Most requests a minute that a key can be given; more is `unlimited`. */
export const MAX_KEY_RATE_LIMIT = 1_000_000;

const TEN_YEARS_SECONDS = 10 * 365 * 86_400;

export const KeyCreateSchema = Type.Object({
  kind: Type.Union([Type.Literal('secret'), Type.Literal('publishable')], { description: 'For a backend, or for pages.' }),
  name: Type.Optional(Type.String({ maxLength: 128, description: 'What it is used for, to recognise it.' })),
  scope: Type.Optional(
    Type.Union([Type.Literal('full'), Type.Literal('read'), Type.Literal('moderate')], { description: 'Of secret keys: `full` when absent; `moderate` may read, resolve, edit and delete.' }),
  ),
  rooms: Type.Optional(
    Type.Union([Type.String({ minLength: 1, maxLength: 129 }), Type.Null()], { description: 'Of secret keys: the one room, or `prefix*`, that it reaches; all when absent or null.' }),
  ),
  expiresInSeconds: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: TEN_YEARS_SECONDS }), Type.Null()], { description: 'How long it is good for, at most ten years; until it is revoked when absent or null.' }),
  ),
  rateLimit: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: MAX_KEY_RATE_LIMIT }), Type.Literal('unlimited'), Type.Null()], {
      description: 'Of secret keys: requests a minute counted on the key; `unlimited` for no limit; counted on the address when absent or null.',
    }),
  ),
});
export type KeyCreate = Static<typeof KeyCreateSchema>;

export const KeyRotateSchema = Type.Object({
  overlapSeconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: TEN_YEARS_SECONDS, default: 86_400, description: 'How long the old key still works; a day when absent, 0 to end it at once.' }),
  ),
});
export type KeyRotate = Static<typeof KeyRotateSchema>;

/** A key as stored, with what finds it by its value. */
export type StoredKey = ApiKey & {
  /** SHA-256 of the value, base64url. */
  readonly hash: string;
};

/** What the hash of a key leads to. It repeats `expiresAt`, so that it changes whenever the key does. */
export interface KeyPointer {
  readonly environmentId: string;
  readonly keyId: string;
  readonly expiresAt: string | null;
}

export type SigningAlgorithm = 'HS256' | 'RS256' | 'PS256' | 'ES256' | 'EdDSA';

/** What user tokens of an environment are verified with. */
export type SigningKey =
  | { readonly kid: string; readonly kind: 'secret'; readonly alg: 'HS256'; readonly secret: string; readonly createdAt: string }
  | { readonly kid: string; readonly kind: 'public'; readonly alg: Exclude<SigningAlgorithm, 'HS256'>; readonly key: string; readonly createdAt: string }
  | { readonly kid: string; readonly kind: 'jwks'; readonly alg: Exclude<SigningAlgorithm, 'HS256'>; readonly url: string; readonly createdAt: string };
