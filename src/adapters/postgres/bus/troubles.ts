import { firstLine } from '../../../lib/thrown.ts';
import { sqlState } from '../faults.ts';
import type { Target } from '../target.ts';
import { QUEUE_FULL } from './notifier.ts';

/** The line for an operator about a process that does not hear the others, and what that means. */
export function deafMessage({ label }: Target, reason: string): string {
  return (
    `PostgreSQL at ${label}: this process does not hear the others (${reason}). Until it does, changes made by others ` +
    'reach its sockets when it next looks for them, and cursors and typing are missing'
  );
}

/** The line for an operator about a process whose notifications are refused, what that means, and what to do. */
export function refusedMessage({ label }: Target, error: unknown): string {
  const remedy =
    sqlState(error) === QUEUE_FULL
      ? '. A session that listens, and stays in a transaction, keeps the queue full: end the one with the oldest ' +
        'xact_start in pg_stat_activity'
      : '';
  return (
    `PostgreSQL at ${label}: this process cannot tell the others what it has changed (${firstLine(error)}). Until it ` +
    `can, that reaches their sockets when they next look for it, and cursors and typing are missing${remedy}`
  );
}
