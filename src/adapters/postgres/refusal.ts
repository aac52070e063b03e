import { CollabError } from '../../model/errors.ts';
import { faultOf, sqlState } from './faults.ts';

/** The refusal of a call that failed with an error of the database (`storage_full`, `storage_failed`). */
export function refusalOf(cause: unknown): CollabError {
  const fault = faultOf(cause);
  if (fault === 'full')
    return caused(new CollabError('storage_full', 'The disk of the database is full: nothing was written'), cause);
  const what =
    fault === 'refused' ? `refuses this (SQLSTATE ${sqlState(cause) ?? 'unknown'})` : 'cannot be reached at the moment';
  return caused(new CollabError('storage_failed', `The database ${what}: the change was not confirmed`), cause);
}

function caused(refusal: CollabError, cause: unknown): CollabError {
  return Object.assign(refusal, { cause });
}
