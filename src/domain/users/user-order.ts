import type { User } from '../../model/user.ts';
import type { Entry, Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { escapeId, userOrderOf, usersOf } from '../records/partitions.ts';
import { parseRecord, readRecord } from '../records/record.ts';
import { scanSlices } from '../records/scan.ts';

// Users are stored by id. This index orders them by creation time, so that a page of a list does not read all users.

/** Prefix of the keys of the index. */
export const USER_ORDER_PREFIX = 'u/';
/** Exists once every user is in the index: stores of earlier versions have users without an index. */
const COMPLETE_KEY = 'complete';

const orderKey = ({ createdAt, userId }: Pick<User, 'createdAt' | 'userId'>): string =>
  `${USER_ORDER_PREFIX}${createdAt}~${escapeId(userId)}`;

/** Marks the index as complete, in the transaction that creates or imports an environment. */
export function markOrderComplete(tx: Transaction, environmentId: string): void {
  tx.put(userOrderOf(environmentId), COMPLETE_KEY, '1');
}

/** Adds a user to the index, in the transaction that creates the user. */
export function addToOrder(tx: Transaction, environmentId: string, user: Pick<User, 'createdAt' | 'userId'>): void {
  tx.put(userOrderOf(environmentId), orderKey(user), escapeId(user.userId));
}

/** Removes a user from the index, in the transaction that erases the user. */
export function deleteFromOrder(
  tx: Transaction,
  environmentId: string,
  user: Pick<User, 'createdAt' | 'userId'>,
): void {
  tx.delete(userOrderOf(environmentId), orderKey(user));
}

/** The user of an index entry; null if the user has been erased since, or erased and created again. */
export async function userInOrder(ctx: Context, environmentId: string, { key, value }: Entry): Promise<User | null> {
  const user = await readRecord<User>(ctx.store, usersOf(environmentId), value);
  return user !== undefined && orderKey(user) === key ? user : null;
}

/**
 * Makes sure that every user of the environment is in the index. Costs one lookup, except for the first call after an
 * upgrade.
 */
export async function ensureUserOrder(ctx: Context, environmentId: string): Promise<void> {
  if ((await ctx.store.get(userOrderOf(environmentId), COMPLETE_KEY)) === undefined)
    await completeUserOrder(ctx, environmentId);
}

/**
 * Adds missing users to the index and returns their number. The background worker calls it too: during a rolling
 * upgrade, a worker of an older version may create users without adding them.
 */
export async function completeUserOrder(ctx: Context, environmentId: string): Promise<number> {
  let missing = 0;
  for await (const slice of scanSlices(ctx.store, usersOf(environmentId)))
    missing += await putMissing(ctx, environmentId, slice);
  if ((await ctx.store.get(userOrderOf(environmentId), COMPLETE_KEY)) === undefined) {
    await ctx.store.transact((tx) => Promise.resolve(markOrderComplete(tx, environmentId)));
  }
  return missing;
}

async function putMissing(ctx: Context, environmentId: string, slice: readonly Entry[]): Promise<number> {
  const missing: string[] = [];
  for (const { key, value } of slice) {
    if ((await ctx.store.get(userOrderOf(environmentId), orderKey(parseRecord<User>(value)))) === undefined)
      missing.push(key);
  }
  if (missing.length === 0) return 0;
  return ctx.store.transact(async (tx) => {
    let put = 0;
    for (const key of missing) {
      // Read in the transaction: a user who is erased in the meantime must not be added.
      const user = await readRecord<User>(tx, usersOf(environmentId), key);
      if (user === undefined) continue;
      addToOrder(tx, environmentId, user);
      put++;
    }
    return put;
  });
}
