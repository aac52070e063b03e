import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { type SubscriptionAction, SubscriptionSchema, type SubscriptionState } from '../../model/notification.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import { requireRoomAccess } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { parseThread, requireThreadAccess, threadNotFound, threadPartition } from '../comments/thread-view.ts';
import type { Context } from '../context.ts';
import { type Idempotency, type IdempotentResponse, withIdempotency } from '../idempotency.ts';
import { checkId } from '../input/bounds.ts';
import { InputSchema, validate } from '../input/validate.ts';
import { escapeId, THREAD_KEY, usersOf } from '../records/partitions.ts';
import { putThreadSubscription, readFollowers } from './followers.ts';
import { requireOwnUser } from './own-user.ts';
import { readRecipient, stateOf } from './recipients.ts';

const input = new InputSchema(SubscriptionSchema);

const states: Readonly<Record<SubscriptionAction, SubscriptionState>> = {
  subscribe: 'subscribed',
  unsubscribe: 'unsubscribed',
  mute: 'muted',
};

/**
 * Changes what a thread notifies a user of, and returns `{"threadId":…,"userId":…,"state":…}`. `body` is the parsed
 * JSON body. Throws `forbidden`, `invalid_request`, `unknown_user`, `thread_not_found`, `idempotency_key_reused`.
 */
export async function changeSubscription(
  ctx: Context,
  actor: Actor,
  threadId: string,
  body: unknown,
  idempotency: Idempotency,
): Promise<IdempotentResponse> {
  await requireThreadAccess(ctx, actor, threadId);
  const { userId: given, action } = validate(input, body);
  const userId = ownUserId(actor, given);
  requireOwnUser(actor, userId, 'write');
  const { id } = actor.environment;
  const partition = threadPartition(id, threadId);
  return withIdempotency(ctx, actor, idempotency, async (tx) => {
    requireRoomAccess(actor, parseThread(await tx.get(partition, THREAD_KEY)).roomId);
    if (actor.kind === 'backend' && (await tx.get(usersOf(id), escapeId(userId))) === undefined)
      throw new CollabError(
        'unknown_user',
        `Unknown user: ${userId}. Create the user with PUT /users/${escapeId(userId)}`,
      );
    const state = states[action];
    putThreadSubscription(tx, id, threadId, userId, { state, at: timestamp(ctx.clock.now()) });
    return { status: 200, body: JSON.stringify({ threadId, userId, state }) };
  });
}

/**
 * What a user has chosen for a thread, as `changeSubscription` returns it; `default` if nothing. Throws `forbidden`,
 * `invalid_request`, `thread_not_found`.
 */
export async function getSubscription(ctx: Context, actor: Actor, userId: string, threadId: string): Promise<string> {
  await requireThreadAccess(ctx, actor, threadId);
  requireOwnUser(actor, userId, 'read');
  const { id } = actor.environment;
  if ((await ctx.store.get(threadPartition(id, threadId), THREAD_KEY)) === undefined) throw threadNotFound();
  const { choices } = await readFollowers(ctx, id, threadId);
  const { user } = await readRecipient(ctx.store, id, userId);
  return JSON.stringify({ threadId, userId, state: stateOf(user, choices.get(userId)) });
}

function ownUserId(actor: Actor, given: string | undefined): string {
  if (given === undefined) {
    if (actor.kind === 'backend')
      throw new CollabError('invalid_request', 'userId is required, unless a user token is sent');
    return actor.userId;
  }
  checkId('userId', given, limitsOf(actor.environment));
  return given;
}
