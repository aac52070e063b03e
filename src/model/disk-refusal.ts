import { isDiskError, type SystemError, systemErrorOf } from '../lib/errno.ts';
import { CollabError } from './errors.ts';

const fullErrors: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);

/**
 * The refusal of a write that failed with an error of the disk: `storage_full` if it has no space left for this user,
 * otherwise `storage_failed`; null if the error is not one of the disk. Its `cause` is the error.
 */
export function diskRefusalOf(thrown: unknown): CollabError | null {
  const error = systemErrorOf(thrown);
  if (error === null || !isDiskError(error)) return null;
  return fullErrors.has(error.name) ? diskFull(thrown) : diskFailed(thrown);
}

/** The refusal of a write for which the disk, or the quota on it (EDQUOT), had no space left. */
export function diskFull(cause?: unknown): CollabError {
  const what =
    systemErrorOf(cause)?.name === 'EDQUOT'
      ? 'The server’s disk quota is used up (EDQUOT)'
      : 'The server’s disk is full';
  return caused(new CollabError('storage_full', `${what}: nothing was written`), cause);
}

/** The refusal of a write that the disk has refused, or during which it has failed. */
export function diskFailed(cause: unknown): CollabError {
  const { name, meaning }: SystemError = systemErrorOf(cause) ?? { name: 'EIO', meaning: '' };
  const what = name === 'EIO' ? 'reports an I/O error (EIO)' : `refuses writes (${name}: ${meaning})`;
  return caused(new CollabError('storage_failed', `The server’s disk ${what}: the change was not confirmed`), cause);
}

function caused(refusal: CollabError, cause: unknown): CollabError {
  return cause === undefined ? refusal : Object.assign(refusal, { cause });
}
