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

/** What user tokens of an environment are verified with (decisions §6). */
export type SigningKey =
  | { readonly kid: string; readonly kind: 'secret'; readonly alg: 'HS256'; readonly secret: string; readonly createdAt: string }
  | { readonly kid: string; readonly kind: 'public'; readonly alg: Exclude<SigningAlgorithm, 'HS256'>; readonly key: string; readonly createdAt: string }
  | { readonly kid: string; readonly kind: 'jwks'; readonly alg: Exclude<SigningAlgorithm, 'HS256'>; readonly url: string; readonly createdAt: string };
