import { BoundedMap } from '../../lib/bounded-map.ts';
import { foldText } from '../../lib/fold-text.ts';
import { type UserSummary, summaryOf } from '../../model/user.ts';
import type { Store } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { userOrderOf } from '../records/partitions.ts';
import { scanSlices } from '../records/scan.ts';
import { ensureUserOrder, USER_ORDER_PREFIX, userInOrder } from './user-order.ts';

/** The users of an environment that a search considers, the newest first. */
const MAX_USERS = 10_000;
/** How long the list of them is used, in milliseconds: a search follows each key that a user presses. */
const FRESH_MS = 5_000;
const MAX_ENVIRONMENTS = 50;

/** A user whom a search considers. `name` (the id of a user without one) and `id` are folded, once for all searches. */
export interface Searchable {
  readonly user: UserSummary;
  readonly name: string;
  readonly id: string;
}

/** A user as a search considers them. */
export function searchable(user: UserSummary): Searchable {
  const id = foldText(user.userId);
  return { user, name: user.name === null ? id : foldText(user.name), id };
}

interface Names {
  readonly readAt: number;
  readonly users: Promise<readonly Searchable[]>;
}

const namesByStore = new WeakMap<Store, BoundedMap<string, Names>>();

/** The newest 10 000 users of an environment as of at most 5 s ago. */
export function allUsers(ctx: Context, environmentId: string): Promise<readonly Searchable[]> {
  const names = namesByStore.get(ctx.store) ?? new BoundedMap<string, Names>(MAX_ENVIRONMENTS);
  namesByStore.set(ctx.store, names);
  const known = names.get(environmentId);
  const now = ctx.clock.monotonic();
  if (known !== undefined && now - known.readAt < FRESH_MS) return known.users;
  const users = readUsers(ctx, environmentId);
  names.set(environmentId, { readAt: now, users });
  // Avoid an unhandled rejection; the next read tries again.
  users.catch(() => names.set(environmentId, { readAt: -FRESH_MS, users: Promise.resolve([]) }));
  return users;
}

async function readUsers(ctx: Context, environmentId: string): Promise<readonly Searchable[]> {
  await ensureUserOrder(ctx, environmentId);
  const users: Searchable[] = [];
  for await (const slice of scanSlices(ctx.store, userOrderOf(environmentId), {
    prefix: USER_ORDER_PREFIX,
    reverse: true,
  })) {
    const loaded = await Promise.all(slice.map((entry) => userInOrder(ctx, environmentId, entry)));
    for (const user of loaded) if (user !== null) users.push(searchable(summaryOf(user)));
    if (users.length >= MAX_USERS) break;
  }
  return users;
}
