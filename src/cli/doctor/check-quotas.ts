import type { UsageKind } from '../../domain/quotas/usage.ts';
import { findUsageDifferences } from '../../domain/quotas/usage-check.ts';
import type { Check, CheckedFolder } from './check.ts';
import { checkCounts } from './check-counts.ts';

const units: Readonly<Record<UsageKind, string>> = {
  comments: 'comments',
  uploadBytes: 'bytes of uploads',
  stateBytes: 'bytes of shared states',
};

/** Compares the counts that quotas limit with what is stored. Returns nothing if there is no store. */
export function checkQuotas(folder: CheckedFolder): Promise<Check[]> {
  return checkCounts(folder, {
    name: 'quotas',
    what: 'the usage counts',
    effect: 'quotas may refuse writes too early or too late',
    find: async (ctx, { id }) => {
      const differences = await findUsageDifferences(ctx, id);
      return differences.map(
        ({ userId, kind, counted, stored }) =>
          `${userId === null ? 'in total' : `user ${userId} has`} ${counted} ${units[kind]} counted, but ${stored} stored`,
      );
    },
  });
}
