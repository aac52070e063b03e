import { findInboxDifferences } from '../../domain/notifications/inbox-check.ts';
import type { Check, CheckedFolder } from './check.ts';
import { checkCounts } from './check-counts.ts';

/** Compares the numbers of unread notifications with what is stored. Returns nothing if there is no store. */
export function checkInboxes(folder: CheckedFolder): Promise<Check[]> {
  return checkCounts(folder, {
    name: 'inboxes',
    what: 'the counts of unread notifications',
    effect: 'badges may show a wrong number',
    find: async (ctx, { id }) => {
      const differences = await findInboxDifferences(ctx, id);
      return differences.map(
        ({ userId, counted, stored }) => `user ${userId} has ${counted} counted, but ${stored} stored`,
      );
    },
  });
}
