import { hash } from 'node:crypto';
import { authenticateAdmin, type SessionHolder } from '../../domain/admins/admin-sessions.ts';
import { requireChange, requireOrigin, requireRead, requireWrite } from '../../domain/access/access.ts';
import type { Actor, BackendActor, Context, UserActor } from '../../domain/context.ts';
import { type Idempotency, parseIdempotencyKey } from '../../domain/idempotency.ts';
import { authenticateSecretKey, cachedSecretKey, type SecretKeyHolder } from '../../domain/access/keys.ts';
import { authenticateUser } from '../../domain/access/tokens.ts';
import { recordUserFromToken } from '../../domain/users/users.ts';
import { CollabError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import type { Exchange } from '../core/exchange.ts';
import type { RequestHead } from '../../net/request-head.ts';
import type { Route } from './route.ts';

/** Who a request says it comes from, or why that is refused: decided before the route is known, thrown after. */
export type KeyLookup = SecretKeyHolder | CollabError;

/**
 * Looks at the `Authorization` header of a request; a promise only where the key has to be looked up.
 * @returns `missing_credentials`, `invalid_key` or `environment_disabled` as a value. Fails only with faults of our own.
 */
export function lookUpKey(ctx: Context, authorization: string): KeyLookup | Promise<KeyLookup> {
  if (authorization === '') return missing('Send the secret key in a header: Authorization: Bearer sk_…');
  if (authorization.slice(0, 7).toLowerCase() !== 'bearer ') return missing('Authorization must be the word Bearer, a space and the secret key');
  const key = authorization.slice(7);
  try {
    return cachedSecretKey(ctx, key, 'rest') ?? authenticateSecretKey(ctx, key, 'rest').catch(refusalOf);
  } catch (thrown) {
    return refusalOf(thrown);
  }
}

function refusalOf(thrown: unknown): CollabError {
  if (thrown instanceof CollabError) return thrown;
  throw thrown;
}

/** The backend that a credential proves. Throws what it was refused with. */
export function backendActorOf(credential: KeyLookup): BackendActor {
  if (credential instanceof CollabError) throw credential;
  return credential.actor;
}

/** Whether a request comes with what a browser has, a publishable key and a user token, and no secret key. */
export function isOfUser({ authorization, serviceKey, serviceToken }: RequestHead): boolean {
  return authorization === '' && (serviceKey !== '' || serviceToken !== '');
}

/**
 * The user that `X-Service-Key` and `X-Service-Token` prove, who is known from then on. Throws `missing_credentials`,
 * `invalid_key`, `environment_disabled`, `invalid_token`, `token_expired`, `origin_not_allowed`.
 */
export async function userOf(ctx: Context, { serviceKey, serviceToken, origin }: RequestHead, log: Logger): Promise<UserActor> {
  if (serviceKey === '') throw missing('X-Service-Token needs the publishable key in X-Service-Key beside it');
  if (serviceToken === '') throw missing('X-Service-Key needs the token of a user in X-Service-Token beside it');
  const { actor, claims } = await authenticateUser(ctx, serviceKey, serviceToken, 'rest');
  requireOrigin(actor.environment, origin);
  try {
    await recordUserFromToken(ctx, actor.environment, claims, 'rest');
  } catch (error) {
    // A store that takes no writes must not keep people from reading.
    log.warn({ err: error, user: claims.userId }, 'the user of a request could not be recorded');
  }
  return actor;
}

/** The admin whose session the `Authorization` header names. Throws `missing_credentials`, `invalid_key`, `invalid_session`. */
export async function adminOf(ctx: Context, authorization: string): Promise<SessionHolder> {
  if (authorization.slice(0, 7).toLowerCase() !== 'bearer ') throw missing('Send the token of an admin session in a header: Authorization: Bearer adm_…');
  return authenticateAdmin(ctx, authorization.slice(7));
}

/** Throws `forbidden` unless the actor may use the route, in the room when the path names one. */
export function requireAccess(route: Route, actor: Actor, roomId: string | undefined): void {
  if (route.access === 'read') requireRead(actor, roomId);
  else if (route.access === 'create') requireWrite(actor, roomId);
  else requireChange(actor, roomId);
}

/** How a request may be repeated; null without `Idempotency-Key`. Throws `invalid_request` when that is malformed. */
export function idempotencyOf(route: Route, exchange: Exchange, body: Buffer): Idempotency {
  const { idempotencyKey, method, path } = exchange.head;
  if (route.idempotent !== true || idempotencyKey === '') return null;
  return { key: parseIdempotencyKey(idempotencyKey), method, path, bodyHash: hash('sha256', body, 'hex') };
}

function missing(message: string): CollabError {
  return new CollabError('missing_credentials', message);
}
