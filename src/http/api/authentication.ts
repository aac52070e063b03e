import { authenticateAdmin, type AuthenticatedAdmin } from '../../domain/admins/admin-sessions.ts';
import { requireOrigin } from '../../domain/access/access.ts';
import type { BackendActor, UserActor } from '../../domain/access/actor.ts';
import type { Context } from '../../domain/context.ts';
import { authenticateSecretKey, type AuthenticatedBackend } from '../../domain/access/keys.ts';
import { authenticateUser } from '../../domain/access/tokens.ts';
import { impersonate } from '../../domain/users/impersonate.ts';
import { recordUserFromToken } from '../../domain/users/users.ts';
import { CollabError } from '../../model/errors.ts';
import type { RequestHead } from '../../net/request-head.ts';
import type { Logger } from '../../observability/log.ts';
import { corsHeaders } from '../core/cors.ts';
import type { ApiRequest } from './api-request.ts';
import type { Route } from './route.ts';

/** The holder of the secret key in `Authorization`, or the refusal to throw if the route needs a key. */
export type KeyLookup = AuthenticatedBackend | CollabError;

/**
 * Looks up the secret key in an `Authorization` header. Returns the refusals `missing_credentials`, `invalid_key` and
 * `environment_disabled`; rejects on internal errors only.
 *
 * @param authorization '' for no header
 */
export async function lookUpKey(ctx: Context, authorization: string): Promise<KeyLookup> {
  if (authorization === '') return missing('Send the secret key in a header: Authorization: Bearer sk_…');
  if (!isBearer(authorization))
    return missing(
      `Authorization must consist of the word Bearer, a space and the secret key, not ${schemeOf(authorization)}`,
    );
  try {
    return await authenticateSecretKey(ctx, authorization.slice(BEARER.length), 'rest');
  } catch (thrown) {
    if (thrown instanceof CollabError) return thrown;
    throw thrown;
  }
}

/** The backend of a key. Throws the refusal if the key was refused. */
export function backendOf(key: KeyLookup): BackendActor {
  if (key instanceof CollabError) throw key;
  return key.actor;
}

/**
 * Sets the actor or the admin of a request from the credential that its route needs, if that is not the secret key
 * alone (`backendOf`). Throws what `backendOf`, `authenticateUserOf` and `authenticateAdminOf` throw.
 */
export async function authenticate(request: ApiRequest, route: Route, key: KeyLookup): Promise<void> {
  switch (route.credential) {
    case 'user':
    case 'either':
      return authenticateBrowser(request, route.credential, key, route.allowsImpersonation === true);
    case 'admin':
      request.adminSession = await authenticateAdminOf(request.ctx, request.head.authorization);
      return;
    case 'public':
      return;
    default:
      // A route of a plugin, which need not be typed: without a credential that is known, nobody may call it.
      throw new CollabError('internal', `the route ${route.operationId} has no credential`);
  }
}

async function authenticateBrowser(
  request: ApiRequest,
  credential: 'user' | 'either',
  key: KeyLookup,
  allowsImpersonation: boolean,
): Promise<void> {
  const { head, ctx, services, headers } = request;
  const caller =
    credential === 'user' || hasOnlyUserCredentials(head)
      ? await authenticateUserOf(ctx, head, services.log, allowsImpersonation ? { key, access: 'create' } : null)
      : backendOf(key);
  request.caller = caller;
  headers.push(...corsHeaders(caller.environment, head.origin));
}

/** A secret key takes precedence over a publishable key and a user token. */
function hasOnlyUserCredentials({ authorization, serviceKey, serviceToken }: RequestHead): boolean {
  return authorization === '' && (serviceKey !== '' || serviceToken !== '');
}

/** A secret key that may impersonate a user. */
export interface ImpersonationKey {
  readonly key: KeyLookup;
  /** The access that the key must allow. */
  readonly access: 'read' | 'create';
}

/**
 * The user that `X-Service-Key` and `X-Service-Token` authenticate, who is recorded as known; or the one in the
 * parameter `userId`, whom a secret key impersonates. Throws `missing_credentials`, `invalid_key`,
 * `environment_disabled`, `invalid_token`, `token_expired`, `origin_not_allowed`, and for a secret key as
 * `impersonate`.
 *
 * @param impersonation null where secret keys may not impersonate users
 */
export async function authenticateUserOf(
  ctx: Context,
  head: RequestHead,
  log: Logger,
  impersonation: ImpersonationKey | null = null,
): Promise<UserActor> {
  const { serviceKey, serviceToken, origin, authorization, query } = head;
  if (impersonation !== null && authorization !== '' && serviceKey === '' && serviceToken === '') {
    const userId = new URLSearchParams(query).get('userId');
    if (userId !== null) return impersonate(ctx, backendOf(impersonation.key), userId, impersonation.access);
  }
  if (serviceKey === '')
    throw missing(
      'X-Service-Key is missing: ' +
        `${impersonation === null || authorization === '' ? 'send the publishable key in it, together with X-Service-Token' : impersonationRemedy(impersonation.key)}`,
    );
  if (serviceToken === '')
    throw missing('X-Service-Token is missing: send the token of a user in it, together with X-Service-Key');
  const { actor, claims } = await authenticateUser(ctx, serviceKey, serviceToken, 'rest');
  requireOrigin(actor.environment, origin);
  try {
    await recordUserFromToken(ctx, actor.environment, claims, 'rest');
  } catch (error) {
    // Users must be able to read even while the store cannot be written.
    log.warn({ err: error, user: claims.userId }, 'the user of a request could not be recorded');
  }
  return actor;
}

/** Names the missing part of a request with `Authorization` that names no user, and what to send. */
function impersonationRemedy(key: KeyLookup): string {
  const sent =
    key instanceof CollabError
      ? 'Authorization was sent, but without a valid secret key and a user; with a valid key,'
      : 'a secret key was sent, but no user;';
  return (
    `${sent} add ?userId=<user> for the user for whom the key acts, or send the publishable key in ` +
    'X-Service-Key and the token of a user in X-Service-Token'
  );
}

async function authenticateAdminOf(ctx: Context, authorization: string): Promise<AuthenticatedAdmin> {
  if (!isBearer(authorization))
    throw missing('Send the token of an admin session in a header: Authorization: Bearer adm_…');
  return authenticateAdmin(ctx, authorization.slice(BEARER.length));
}

const BEARER = 'bearer ';

function isBearer(authorization: string): boolean {
  return authorization.slice(0, BEARER.length).toLowerCase() === BEARER;
}

/** Describes an `Authorization` header without its credential. */
function schemeOf(authorization: string): string {
  const [, scheme] = /^([A-Za-z][A-Za-z-]{0,19}) /.exec(authorization) ?? [];
  return scheme === undefined
    ? `a value of ${authorization.length} characters without a scheme`
    : `the scheme ${scheme}`;
}

function missing(message: string): CollabError {
  return new CollabError('missing_credentials', message);
}
