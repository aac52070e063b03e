import { createHmac } from 'node:crypto';
import type { Config } from '../../config/schema.ts';
import { invalidField } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import { checkId } from '../input/bounds.ts';
import type { Actor } from './actor.ts';
import type { Context } from '../context.ts';

interface IceServer {
  readonly urls: readonly string[];
  readonly username?: string;
  readonly credential?: string;
}

/** The TURN and STUN servers for browsers, with the credentials for the former (docs/api.md, "TURN credentials"). */
export interface TurnCredentials {
  readonly iceServers: readonly IceServer[];
  readonly username: string | null;
  readonly password: string | null;
  readonly ttl: number;
  readonly uris: readonly string[];
  readonly expiresAt?: string;
}

const DEFAULT_TTL_SECONDS = 3600;
const MIN_TTL_SECONDS = 60;
const MAX_TTL_SECONDS = 86_400;
const BACKEND_NAME = 'backend';

/** The `ttl` parameter in seconds; 3 600 when absent. Throws `invalid_request` unless it is 60 to 86 400. */
export function parseTtl(text: string | null): number {
  if (text === null) return DEFAULT_TTL_SECONDS;
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (seconds >= MIN_TTL_SECONDS && seconds <= MAX_TTL_SECONDS) return seconds;
  throw invalidField(
    'ttl',
    `must be a whole number of seconds between ${MIN_TTL_SECONDS} and ${MAX_TTL_SECONDS}`,
    text,
  );
}

/**
 * New credentials for the configured TURN servers, which are not stored. Without TURN servers it gives the STUN servers
 * without credentials. Throws `invalid_request` for an invalid user id.
 *
 * @param userId the user for whom a backend requests them; ignored for a user, who gets their own
 * @param ttl seconds, 60 to 86 400
 */
export function turnCredentials(
  ctx: Context,
  actor: Actor,
  { urls, stunUrls, secret }: Config['turn'],
  userId: string | null,
  ttl: number,
): TurnCredentials {
  const user = actor.kind === 'user' ? actor.userId : (userId ?? BACKEND_NAME);
  checkId('userId', user, limitsOf(actor.environment));
  const stun: IceServer[] = stunUrls.length === 0 ? [] : [{ urls: stunUrls }];
  const [signing] = secret;
  if (urls.length === 0 || signing === undefined)
    return { iceServers: stun, username: null, password: null, ttl: 0, uris: [] };
  const expires = Math.floor(ctx.clock.now() / 1000) + ttl;
  const username = `${expires}:${actor.environment.id}.${escapeForCoturn(user)}`;
  const password = turnPassword(signing, username);
  const turn: IceServer = { urls, username, credential: password };
  return { iceServers: [...stun, turn], username, password, ttl, uris: urls, expiresAt: timestamp(expires * 1000) };
}

/**
 * A user id with the characters that coturn refuses in a user name percent-encoded: white space, quotes and
 * backslashes.
 */
function escapeForCoturn(userId: string): string {
  return userId.replaceAll(/[\s"'\\%]/gu, (refused) =>
    Buffer.from(refused).toString('hex').toUpperCase().replaceAll(/../g, '%$&'),
  );
}

/** The password of a user name: an HMAC with SHA-1, because TURN servers accept no other hash. */
export function turnPassword(secret: string, username: string): string {
  return createHmac('sha1', secret).update(username).digest('base64');
}
