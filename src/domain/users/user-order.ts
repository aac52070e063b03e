import type { User } from '../../model/user.ts';
import type { Entry, Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { escapeId, userOrderOf, usersOf } from '../records/partitions.ts';

// Users stand in their partition by id. This index has them by time of creation, so that a page of a list reads a page.

/** What the keys of the index begin with. */
export const USER_ORDER_PREFIX = 'u/';
/** There once every user is in the index: stores of earlier versions have users and no index. */
const COMPLETE_KEY = 'complete';
/** Users put into the index in one transaction. */
const SLICE = 500;

const orderKey = ({ createdAt, userId }: Pick<User, 'createdAt' | 'userId'>): string => `${USER_ORDER_PREFIX}${createdAt}~${escapeId(userId)}`;

/** Notes that every user is in the order: of an environment that is being made, or imported with the order. */
export function markOrderComplete(tx: Transaction, environmentId: string): void {
  tx.put(userOrderOf(environmentId), COMPLETE_KEY, '1');
}

/** Puts a user who is being made into the order. */
export function addToOrder(tx: Transaction, environmentId: string, user: Pick<User, 'createdAt' | 'userId'>): void {
  tx.put(userOrderOf(environmentId), orderKey(user), escapeId(user.userId));
}

/** Takes a user who is being erased out of the order. */
export function deleteFromOrder(tx: Transaction, environmentId: string, user: Pick<User, 'createdAt' | 'userId'>): void {
  tx.delete(userOrderOf(environmentId), orderKey(user));
}

/** The user of an entry of the order; null for one who has been erased since, or made anew later. */
export async function userInOrder(ctx: Context, environmentId: string, { key, value }: Entry): Promise<User | null> {
  const stored = await ctx.store.get(usersOf(environmentId), value);
  if (stored === undefined) return null;
  const user = JSON.parse(stored) as User;
  return orderKey(user) === key ? user : null;
}

/** Makes sure that every user of the environment is in the order. Costs one lookup, but for the first call after an upgrade. */
export async function ensureUserOrder(ctx: Context, environmentId: string): Promise<void> {
  if ((await ctx.store.get(userOrderOf(environmentId), COMPLETE_KEY)) === undefined) await completeUserOrder(ctx, environmentId);
}

/**
 * Puts every user who is missing into the order. Returns how many were. For the background worker too: while the workers
 * are replaced by those of a newer version, an older one may make users without the order.
 */
export async function completeUserOrder(ctx: Context, environmentId: string): Promise<number> {
  let missing = 0;
  for (let after: string | undefined; ; ) {
    const slice = await ctx.store.range(usersOf(environmentId), { after, limit: SLICE });
    missing += await putMissing(ctx, environmentId, slice);
    if (slice.length < SLICE) break;
    after = slice.at(-1)?.key;
  }
  if ((await ctx.store.get(userOrderOf(environmentId), COMPLETE_KEY)) === undefined) {
    await ctx.store.transact((tx) => Promise.resolve(markOrderComplete(tx, environmentId)));
  }
  return missing;
}

async function putMissing(ctx: Context, environmentId: string, slice: readonly Entry[]): Promise<number> {
  const missing: string[] = [];
  for (const { key, value } of slice) {
    if ((await ctx.store.get(userOrderOf(environmentId), orderKey(JSON.parse(value) as User))) === undefined) missing.push(key);
  }
  if (missing.length === 0) return 0;
  return ctx.store.transact(async (tx) => {
    let put = 0;
    for (const key of missing) {
      // Guarded: a user who is erased meanwhile must not be put back.
      const stored = await tx.get(usersOf(environmentId), key);
      if (stored === undefined) continue;
      addToOrder(tx, environmentId, JSON.parse(stored) as User);
      put++;
    }
    return put;
  });
}
