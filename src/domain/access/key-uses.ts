import { timestamp } from '../../lib/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { ENVIRONMENTS, keyUsesOf } from '../records/partitions.ts';

/**
 * The last use of a key in this process. Kept in memory until `writeKeyUses`, so that no request waits for the write.
 */
export interface KeyUse {
  readonly environmentId: string;
  readonly keyId: string;
  /** Milliseconds since the epoch; 0 for never. */
  usedAt: number;
  /** The time in the store, as far as this process knows: milliseconds since the epoch. */
  writtenAt: number;
}

const MINUTE_MS = 60_000;

const uses = new WeakMap<Store, Map<string, KeyUse>>();

/** The record of a key's use in this process: one object per key. */
export function getKeyUse({ store }: Context, environmentId: string, keyId: string): KeyUse {
  const byKey = usesIn(store);
  let use = byKey.get(keyId);
  if (use === undefined) {
    use = { environmentId, keyId, usedAt: 0, writtenAt: 0 };
    byKey.set(keyId, use);
  }
  return use;
}

/** Records a use of a key. `now` is in milliseconds since the epoch. */
export function recordUse(use: KeyUse, now: number): void {
  use.usedAt = now;
}

/**
 * Writes the recorded uses in one commit, each key at most once a minute over all processes. Call it every few seconds
 * and before the process exits.
 */
export async function writeKeyUses({ store }: Context): Promise<void> {
  const byKey = usesIn(store);
  const due = [...byKey.values()]
    .filter(({ usedAt, writtenAt }) => isAnotherMinute(usedAt, writtenAt))
    .map((use) => ({ ...use }));
  if (due.length === 0) return;
  const written = await store.transact(async (tx) => {
    const times = new Map<string, number>();
    for (const { environmentId, keyId, usedAt } of due) {
      // Read in the transaction, so that no key use is written after the environment was deleted.
      if ((await tx.get(ENVIRONMENTS, environmentId)) === undefined) continue;
      const stored = Date.parse((await tx.unguarded.get(keyUsesOf(environmentId), keyId)) ?? '');
      const isFresh = !isAnotherMinute(usedAt, stored);
      if (!isFresh) tx.put(keyUsesOf(environmentId), keyId, timestamp(usedAt));
      times.set(keyId, isFresh ? stored : usedAt);
    }
    return times;
  });
  for (const { keyId } of due) {
    const use = byKey.get(keyId);
    const writtenAt = written.get(keyId);
    if (writtenAt === undefined) byKey.delete(keyId);
    else if (use !== undefined) use.writtenAt = writtenAt;
  }
}

/** Key id -> ISO 8601 time of the last use, for the keys of an environment that were used at all. */
export async function lastUses(ctx: Context, environmentId: string): Promise<ReadonlyMap<string, string>> {
  const entries = await ctx.store.range(keyUsesOf(environmentId));
  return new Map(entries.map(({ key, value }) => [key, value]));
}

/**
 * Whether the times are at least a minute apart, in either direction (the clock may have been set back), or one is NaN.
 */
const isAnotherMinute = (a: number, b: number): boolean => !(Math.abs(a - b) < MINUTE_MS);

function usesIn(store: Store): Map<string, KeyUse> {
  let byKey = uses.get(store);
  if (byKey === undefined) {
    byKey = new Map();
    uses.set(store, byKey);
  }
  return byKey;
}
