import { CollabError } from '../../model/errors.ts';
import { inScope, type RoomScope } from '../../model/room.ts';
import { TokenCreateSchema } from '../../model/token.ts';
import { requireBackend } from './access.ts';
import type { Actor } from './actor.ts';
import type { Context } from '../context.ts';
import { type Idempotency, withIdempotency, type IdempotentAnswer } from '../idempotency.ts';
import { mintUserToken } from './tokens.ts';
import { putUserWithin } from '../users/users.ts';
import { InputSchema, validate } from '../input/validate.ts';

const tokenCreate = new InputSchema(TokenCreateSchema);
const DEFAULT_TTL_SECONDS = 3600;

/**
 * Makes a token for a user, and the user if there is none, and answers `{"token":…,"expiresAt":…}`. `input` is the parsed
 * JSON body. A key that is confined to rooms makes tokens that are, and changes no user that exists. Throws `forbidden`, `invalid_request`,
 * `idempotency_key_reused`.
 */
export async function issueToken(ctx: Context, actor: Actor, userId: string, input: unknown, idempotency: Idempotency): Promise<IdempotentAnswer> {
  requireBackend(actor, 'write');
  const { ttl = DEFAULT_TTL_SECONDS, name, avatarUrl, role, rooms = actor.rooms ?? undefined } = validate(tokenCreate, input);
  for (const rule of rooms ?? []) requireRuleInScope(actor.rooms, rule);
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    await putUserWithin(ctx, tx, actor, userId, { name, avatarUrl });
    // Every use of a token writes its claims to the user, who may have got another name by then: not by a confined key.
    const claims = actor.rooms === null ? { name, avatarUrl } : {};
    const { token, expiresAt } = await mintUserToken(ctx, actor.environment, { userId, ttlSeconds: ttl, ...claims, role, rooms });
    return { status: 201, body: JSON.stringify({ token, expiresAt }) };
  });
}

/** Throws unless every room that a rule reaches is in the scope too. */
function requireRuleInScope(scope: RoomScope, rule: string): void {
  // What `a/*` reaches starts with `a/`, and only a pattern of the scope can hold all of that.
  const covered = rule.endsWith('*') ? inScope(scope?.filter((held) => held.endsWith('*')) ?? null, rule.slice(0, -1)) : inScope(scope, rule);
  if (!covered) throw new CollabError('forbidden', `The key does not reach the rooms ${rule}, so it cannot make a token for them`);
}
