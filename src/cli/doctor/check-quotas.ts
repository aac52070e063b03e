import { listEnvironments } from '../../domain/environments/environments.ts';
import type { UsageKind } from '../../domain/quotas/usage.ts';
import { findUsageDifferences, type UsageDifference } from '../../domain/quotas/usage-check.ts';
import type { Environment } from '../../model/environment.ts';
import { hasStore } from '../shared/folder.ts';
import { useStore } from '../shared/open-store.ts';
import { shellWord } from '../terminal/output.ts';
import { Interrupted } from '../terminal/interruption.ts';
import { Progress } from '../terminal/progress.ts';
import { type Check, fail, ok, reasonOf, type Subject, warn } from './check.ts';

/** How many differences of an environment are listed. */
const MAX_LISTED = 10;
/** How often progress is updated. */
const PROGRESS_MS = 200;

const units: Readonly<Record<UsageKind, string>> = { comments: 'comments', uploadBytes: 'bytes of uploads', stateBytes: 'bytes of shared states' };

/** Compares the counts that quotas limit with what is stored. Returns nothing if there is no store, which another check reports. */
export async function checkQuotas({ dir, config }: Subject): Promise<Check[]> {
  if (!hasStore(config)) return [];
  const remedy = `Recount: collab gc --dir ${shellWord(dir)}. Until then, quotas may refuse writes too early or too late.`;
  const progress = new Progress();
  const timer = setInterval(() => progress.update(() => 'comparing the usage counts with what is stored'), PROGRESS_MS);
  try {
    return await useStore(config, async (ctx) => {
      const environments = await listEnvironments(ctx);
      const checks: Check[] = [];
      for (const environment of environments) {
        const differences = await findUsageDifferences(ctx, environment.id);
        if (differences.length > 0) checks.push(warn('quotas', describe(environment, differences), remedy));
      }
      return checks.length > 0 ? checks : [ok('quotas', `the usage counts of ${environments.length} environments match what is stored`)];
    });
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    return [fail('quotas', `the usage counts cannot be compared with what is stored: ${reasonOf(error)}`, 'Correct what the other checks report, then run this again.')];
  } finally {
    clearInterval(timer);
    progress.end();
  }
}

function describe({ slug }: Environment, differences: readonly UsageDifference[]): string {
  const listed = differences.slice(0, MAX_LISTED).map(({ userId, kind, counted, stored }) => `${userId === null ? 'in total' : `user ${userId} has`} ${counted} ${units[kind]} counted, but ${stored} stored`);
  const more = differences.length - listed.length;
  return `the usage counts of ${slug} are wrong: ${listed.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}
