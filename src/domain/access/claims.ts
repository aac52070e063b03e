import * as Type from 'typebox';
import { CollabError } from '../../model/errors.ts';
import { type Environment, limitsOf } from '../../model/environments/environment.ts';
import { type Metadata, MetadataSchema } from '../../model/metadata.ts';
import type { RoomScope } from '../../model/room.ts';
import { checkId, checkMetadata, checkName, isEmailAddress, isWebAddress, showsSomething } from '../input/bounds.ts';
import type { UserActor } from './actor.ts';
import { InputSchema, validate } from '../input/validate.ts';
import { roleSchema } from '../../model/role-schema.ts';

/** The claims of a user token. */
export interface Claims {
  readonly userId: string;
  readonly role: UserActor['role'];
  readonly rooms: RoomScope;
  /** As `UserActor.confinedKeyId`: the claim `confinedKey`. */
  readonly confinedKeyId: string | null;
  readonly name?: string | undefined;
  readonly avatarUrl?: string | undefined;
  readonly email?: string | undefined;
  readonly metadata?: Metadata | undefined;
  /** `exp` in milliseconds since the epoch; `TOKEN_TOLERANCE_SECONDS` is not added. */
  readonly expiresAt: number;
  /** `iat` in milliseconds since the epoch; absent if the token has none that is a possible time. */
  readonly issuedAt?: number | undefined;
}

/**
 * Seconds by which the clocks of backends may differ from the server's: a token stays valid for so long after `exp`.
 */
export const TOKEN_TOLERANCE_SECONDS = 30;

/** The latest time that an ECMAScript `Date` can represent, in seconds. */
const MAX_TIME_SECONDS = 8.64e12;

const url = () => Type.Optional(Type.String({ maxLength: 2048 }));

const payloadSchema = new InputSchema(
  Type.Object({
    sub: Type.String(),
    exp: Type.Number({ maximum: MAX_TIME_SECONDS }),
    iat: Type.Optional(Type.Number()),
    name: Type.Optional(Type.String({ maxLength: 256 })),
    picture: url(),
    avatar: url(),
    email: Type.Optional(Type.String({ maxLength: 320 })),
    role: Type.Optional(roleSchema()),
    rooms: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 513 }), { maxItems: 1_000 })),
    metadata: Type.Optional(MetadataSchema),
    confinedKey: Type.Optional(Type.String({ maxLength: 64 })),
  }),
);

const MAX_METADATA_BYTES = 4_096;

/**
 * The claims in the payload of a token whose signature is verified. A claim that is null or an empty string counts as
 * absent, and so does a name that shows nothing. Throws `invalid_token`, which names the claim, if one is malformed or
 * too large, or if the token lives too long: `exp` may be at most `jwtMaxLifetime` seconds after `iat`, and at most
 * `jwtMaxLifetime` + 30 seconds after `now`.
 *
 * @param now the current time, in milliseconds since the epoch
 */
export function parseClaims(payload: Readonly<Record<string, unknown>>, environment: Environment, now: number): Claims {
  try {
    return validateClaims(payload, environment, now);
  } catch (thrown) {
    throw thrown instanceof CollabError ? new CollabError('invalid_token', `Invalid token: ${thrown.message}`) : thrown;
  }
}

function validateClaims(payload: Readonly<Record<string, unknown>>, environment: Environment, now: number): Claims {
  const present = Object.entries(payload).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const {
    sub,
    exp,
    iat,
    name: givenName,
    picture,
    avatar,
    email,
    role = 'member',
    rooms = null,
    metadata,
    confinedKey: confinedKeyId = null,
  } = validate(payloadSchema, Object.fromEntries(present));
  const limits = limitsOf(environment);
  checkId('sub', sub, limits);
  checkLifetime(exp, iat, now / 1000, environment.settings.jwtMaxLifetime);
  if (givenName !== undefined) checkName('name', givenName);
  // As an empty one: a person whose directory has a blank name can still sign in.
  const name = givenName !== undefined && showsSomething(givenName) ? givenName : undefined;
  const avatarUrl = picture ?? avatar;
  if (avatarUrl !== undefined && !isWebAddress(avatarUrl)) throw invalid('picture must be an http or https address');
  if (email !== undefined && !isEmailAddress(email)) throw invalid('email must be an email address');
  if (metadata !== undefined) {
    checkMetadata(metadata, limits);
    if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
      throw invalid(`metadata must be at most ${MAX_METADATA_BYTES} bytes of JSON`);
  }
  const issuedAt = iat !== undefined && Math.abs(iat) <= MAX_TIME_SECONDS ? Math.floor(iat * 1000) : undefined;
  return { userId: sub, role, rooms, confinedKeyId, name, avatarUrl, email, metadata, expiresAt: exp * 1000, issuedAt };
}

/** All in seconds. Throws `invalid_token` for a token that lives too long. */
function checkLifetime(exp: number, iat: number | undefined, now: number, max: number): void {
  if (iat !== undefined && exp - iat > max)
    throw invalid(`its lifetime (exp - iat) must be at most ${max} seconds, not ${Math.ceil(exp - iat)}`);
  if (exp - now <= max + TOKEN_TOLERANCE_SECONDS) return;
  throw invalid(`its expiry (exp) must be at most ${max} seconds from now, not ${Math.ceil(exp - now)}`);
}

const invalid = (message: string): CollabError => new CollabError('invalid_token', message);
