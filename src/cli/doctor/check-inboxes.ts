import { findInboxDifferences } from '../../domain/notifications/inbox-check.ts';
import type { Check, Subject } from './check.ts';
import { checkCounts } from './check-counts.ts';

/** Compares the numbers of unread notifications with what is stored. Returns nothing if there is no store. */
export function checkInboxes(subject: Subject): Promise<Check[]> {
  return checkCounts(subject, {
    name: 'inboxes',
    what: 'the counts of unread notifications',
    effect: 'badges may show a wrong number',
    find: async (ctx, { id }) => {
      const differences = await findInboxDifferences(ctx, id);
      return differences.map(({ userId, counted, stored }) => `user ${userId} has ${counted} counted, but ${stored} stored`);
    },
  });
}
