import { timestamp } from '../../lib/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { ENVIRONMENTS, keyUsesOf } from '../records/partitions.ts';

/** When this process last saw a key. Kept in memory until `writeKeyUses`: no request waits for it. */
export interface KeyUse {
  readonly environmentId: string;
  readonly keyId: string;
  /** Milliseconds since the epoch; 0 for never. */
  usedAt: number;
  /** The time that stands in the store, as far as this process knows. */
  writtenAt: number;
}

const MINUTE_MS = 60_000;

const uses = new WeakMap<Store, Map<string, KeyUse>>();

/** The one record of a key's use in this process. */
export function getKeyUse({ store }: Context, environmentId: string, keyId: string): KeyUse {
  const known = usesIn(store);
  let use = known.get(keyId);
  if (use === undefined) {
    use = { environmentId, keyId, usedAt: 0, writtenAt: 0 };
    known.set(keyId, use);
  }
  return use;
}

/** Notes that a key is used now. */
export function recordUse(use: KeyUse, now: number): void {
  use.usedAt = now;
}

/**
 * Writes the uses that this process has noted, in one commit, each key at most once a minute over all processes. To be
 * called every few seconds, and before the process ends.
 */
export async function writeKeyUses({ store }: Context): Promise<void> {
  const known = usesIn(store);
  const due = [...known.values()].filter(({ usedAt, writtenAt }) => isAnotherMinute(usedAt, writtenAt)).map((use) => ({ ...use }));
  if (due.length === 0) return;
  const written = await store.transact(async (tx) => {
    const times = new Map<string, number>();
    for (const { environmentId, keyId, usedAt } of due) {
      // Guarded, so that no use of an environment is left behind its deletion.
      if ((await tx.get(ENVIRONMENTS, environmentId)) === undefined) continue;
      const stored = Date.parse((await store.get(keyUsesOf(environmentId), keyId)) ?? '');
      const isFresh = !isAnotherMinute(usedAt, stored);
      if (!isFresh) tx.put(keyUsesOf(environmentId), keyId, timestamp(usedAt));
      times.set(keyId, isFresh ? stored : usedAt);
    }
    return times;
  });
  for (const { keyId } of due) {
    const use = known.get(keyId);
    const writtenAt = written.get(keyId);
    if (writtenAt === undefined) known.delete(keyId);
    else if (use !== undefined) use.writtenAt = writtenAt;
  }
}

/** When the keys of an environment were last used, by their id; ISO 8601. Those that never were are absent. */
export async function lastUses(ctx: Context, environmentId: string): Promise<ReadonlyMap<string, string>> {
  const entries = await ctx.store.range(keyUsesOf(environmentId));
  return new Map(entries.map(({ key, value }) => [key, value]));
}

/** Whether the times are a minute apart, or one of them is NaN. In either direction: the clock may have been set back. */
const isAnotherMinute = (a: number, b: number): boolean => !(Math.abs(a - b) < MINUTE_MS);

function usesIn(store: Store): Map<string, KeyUse> {
  let known = uses.get(store);
  if (known === undefined) {
    known = new Map();
    uses.set(store, known);
  }
  return known;
}
