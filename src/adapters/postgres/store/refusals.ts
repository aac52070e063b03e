import { firstLine } from '../../../lib/thrown.ts';
import { CollabError } from '../../../model/errors.ts';
import { movedRefusal } from '../../../model/move.ts';
import { faultOf, sqlState } from '../faults.ts';
import { MOVED_STATE } from '../transfer/refuse-writes.ts';

/**
 * The refusal of a request whose read failed: `storage_unavailable`, or `storage_failed` if the database refuses it.
 * Refusals stay as they are.
 */
export function readRefusal(error: unknown): Error {
  if (error instanceof CollabError) return error;
  return refusal(error, 'nothing was read, try again');
}

/**
 * The refusal of a request whose commit failed: `storage_full` if the database has no space left, otherwise
 * as for a read. Refusals stay as they are.
 *
 * @param unknown whether it may have happened nevertheless
 */
export function commitRefusal(error: unknown, unknown: boolean): Error {
  if (error instanceof CollabError) return error;
  if (sqlState(error) === MOVED_STATE) return caused(movedRefusal(), error);
  if (faultOf(error) === 'full')
    return caused(new CollabError('storage_full', 'The disk of the database is full: nothing was written'), error);
  return refusal(error, unknown ? 'the change was not confirmed' : 'nothing was written, try again');
}

function refusal(error: unknown, outcome: string): CollabError {
  const state = sqlState(error);
  const refused = faultOf(error) === 'refused';
  const what = refused ? `refuses this (SQLSTATE ${state ?? 'unknown'})` : 'cannot be reached at the moment';
  const code = refused ? 'storage_failed' : 'storage_unavailable';
  return caused(new CollabError(code, `The database ${what}: ${outcome}`), error);
}

function caused(refused: CollabError, cause: unknown): CollabError {
  return Object.assign(refused, { cause });
}

/** The message of an error for a log of operators: of the cause that a refusal has. */
export function causeOf(error: unknown): string {
  return firstLine(error instanceof Error && error.cause !== undefined ? error.cause : error);
}
