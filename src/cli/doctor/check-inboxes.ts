import { listEnvironments } from '../../domain/environments/environments.ts';
import { findInboxDifferences } from '../../domain/notifications/inbox-check.ts';
import { hasStore } from '../shared/folder.ts';
import { useStore } from '../shared/open-store.ts';
import { shellWord } from '../terminal/output.ts';
import { Interrupted } from '../terminal/interruption.ts';
import { type Check, fail, ok, reasonOf, type Subject, warn } from './check.ts';

/** How many inboxes of an environment are listed. */
const MAX_LISTED = 10;

/**
 * Compares the numbers of unread notifications with what is stored. Returns nothing if there is no store, which another check
 * reports.
 */
export async function checkInboxes({ dir, config }: Subject): Promise<Check[]> {
  if (!hasStore(config)) return [];
  const remedy = `Recount: collab gc --dir ${shellWord(dir)}. Until then, badges may show a wrong number.`;
  try {
    return await useStore(config, async (ctx) => {
      const environments = await listEnvironments(ctx);
      const checks: Check[] = [];
      for (const { id, slug } of environments) {
        const differences = await findInboxDifferences(ctx, id);
        if (differences.length === 0) continue;
        const listed = differences.slice(0, MAX_LISTED).map(({ userId, counted, stored }) => `user ${userId} has ${counted} counted, but ${stored} stored`);
        const more = differences.length - listed.length;
        checks.push(warn('inboxes', `the counts of unread notifications of ${slug} are wrong: ${listed.join('; ')}${more > 0 ? `; and ${more} more` : ''}`, remedy));
      }
      return checks.length > 0 ? checks : [ok('inboxes', `the counts of unread notifications of ${environments.length} environments match what is stored`)];
    });
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    return [fail('inboxes', `the counts of unread notifications cannot be compared with what is stored: ${reasonOf(error)}`, 'Correct what the other checks report, then run this again.')];
  }
}
