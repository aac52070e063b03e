import type { Context } from '../context.ts';
import { unescapeId, usageOf } from '../records/partitions.ts';
import { noUsage, parseUsage, TOTAL_KEY, type Usage, type UsageKind } from './usage.ts';
import { COUNTED_KEY, countAll, type Counts } from './usage-count.ts';

/** A count that differs from what is stored. */
export interface UsageDifference {
  /** The user whose count it is; null for the total of the environment. */
  readonly userId: string | null;
  readonly kind: UsageKind;
  readonly counted: number;
  readonly stored: number;
}

const kinds: readonly UsageKind[] = ['comments', 'uploadBytes', 'stateBytes'];

/**
 * Compares the usage counts of an environment with what it has stored, by reading all of it: once if there is no
 * difference, else twice. Counts that change meanwhile are not compared. An environment whose first count is still to
 * be made has no differences.
 *
 * @returns the differences: of the total first, then by user id
 */
export async function findUsageDifferences(ctx: Context, environmentId: string): Promise<UsageDifference[]> {
  if ((await ctx.store.get(usageOf(environmentId), COUNTED_KEY)) === undefined) return [];
  const first = await compareOnce(ctx, environmentId);
  if (first.length === 0) return [];
  // A write and a deletion during the comparison can look like a difference. Only a real one is found again.
  const again = new Set((await compareOnce(ctx, environmentId)).map((difference) => JSON.stringify(difference)));
  return first.filter((difference) => again.has(JSON.stringify(difference)));
}

async function compareOnce(ctx: Context, environmentId: string): Promise<UsageDifference[]> {
  const before = await readCounts(ctx, environmentId);
  const stored = await countAll(ctx.store, environmentId);
  const after = await readCounts(ctx, environmentId);
  return [...new Set([...before.keys(), ...stored.keys()])].sort().flatMap((key) =>
    kinds
      .map((kind) => ({
        userId: key === TOTAL_KEY ? null : unescapeId(key.slice('u/'.length)),
        kind,
        counted: at(before, key)[kind],
        stored: at(stored, key)[kind],
      }))
      .filter((found) => found.counted !== found.stored && found.counted === at(after, key)[found.kind]),
  );
}

async function readCounts({ store }: Context, environmentId: string): Promise<Counts> {
  const records = await store.range(usageOf(environmentId));
  return new Map(records.filter(({ key }) => key !== COUNTED_KEY).map(({ key, value }) => [key, parseUsage(value)]));
}

function at(counts: Counts, key: string): Usage {
  return counts.get(key) ?? noUsage;
}
