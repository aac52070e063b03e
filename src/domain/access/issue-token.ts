import { CollabError } from '../../model/errors.ts';
import { inScope, type RoomScope } from '../../model/room.ts';
import { TokenCreateSchema } from '../../model/environments/token.ts';
import { confinedKeyOf, requireBackend } from './access.ts';
import type { Actor } from './actor.ts';
import type { Context } from '../context.ts';
import { type Idempotency, withIdempotency, type IdempotentResponse } from '../idempotency.ts';
import { signUserToken } from './tokens.ts';
import { preparePutWithToken } from '../users/users.ts';
import { InputSchema, validate } from '../input/validate.ts';

const tokenCreate = new InputSchema(TokenCreateSchema);
const DEFAULT_TTL_SECONDS = 3600;

/**
 * Makes a token for a user, creates the user if necessary, and returns `{"token":…,"expiresAt":…}`. `input` is the
 * parsed JSON body. A key confined to rooms makes tokens confined to those rooms, which name the key, and does not
 * change existing users. Throws `forbidden`, `invalid_request`, `idempotency_key_reused`.
 */
export async function issueToken(
  ctx: Context,
  actor: Actor,
  userId: string,
  input: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  requireBackend(actor, 'write');
  const {
    ttl = DEFAULT_TTL_SECONDS,
    name,
    avatarUrl,
    role,
    rooms = actor.rooms ?? undefined,
  } = validate(tokenCreate, input);
  for (const rule of rooms ?? []) requireRuleInScope(actor.rooms, rule);
  const confinedKeyId = confinedKeyOf(actor);
  const putUser = await preparePutWithToken(
    ctx,
    actor,
    userId,
    { name, avatarUrl },
    { rooms: rooms ?? null, confinedKeyId },
  );
  // Each use of a token writes its claims to the user. A confined key must not change an existing user that way.
  const claims = confinedKeyId === null ? { name, avatarUrl } : { confinedKeyId };
  const request = { userId, ttlSeconds: ttl, ...claims, role, rooms };
  // Before the transaction, because it reads the signing keys through the store.
  const { token, expiresAt } = await signUserToken(ctx, actor.environment, request);
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    await putUser(tx);
    return { status: 201, body: JSON.stringify({ token, expiresAt }) };
  });
}

/** Throws `forbidden` unless every room that matches `rule` is in the scope. */
function requireRuleInScope(scope: RoomScope, rule: string): void {
  // Only a pattern can cover a pattern: `a/*` is covered by every pattern that matches `a/`.
  const covered = rule.endsWith('*')
    ? inScope(scope?.filter((entry) => entry.endsWith('*')) ?? null, rule.slice(0, -1))
    : inScope(scope, rule);
  if (!covered)
    throw new CollabError('forbidden', `The key does not reach the rooms ${rule}, so it cannot make a token for them`);
}
