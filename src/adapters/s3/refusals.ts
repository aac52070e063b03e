import { CollabError } from '../../model/errors.ts';
import { asStorageError } from '../localfiles/local-staged-blob.ts';
import { ConnectionFailure, S3Failure } from './client/failures.ts';
import { CredentialFailure } from './credentials/source.ts';

/** Settles as `work` does; failures of the store reject with `storage_full` or `storage_failed`, as those of a
 * disk, and with `storage_unavailable` if it does not answer. */
export async function asBlobError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw refusalOf(error) ?? asStorageError(error);
  }
}

/** The refusal for a failure of the store, which is its cause; null for any other error. */
function refusalOf(error: unknown): CollabError | null {
  if (error instanceof S3Failure) {
    const refusal = error.isFull
      ? new CollabError('storage_full', 'The object store has no space left: nothing was written')
      : new CollabError(
          error.status >= 500 || error.status === 429 ? 'storage_unavailable' : 'storage_failed',
          `The object store refuses (${error.code}): the change was not confirmed`,
        );
    return Object.assign(refusal, { cause: error });
  }
  if (error instanceof ConnectionFailure) {
    const what = error.code === '' ? '' : ` (${error.code})`;
    const message = `The object store does not answer${what}: the change was not confirmed`;
    return Object.assign(new CollabError('storage_unavailable', message), { cause: error });
  }
  if (error instanceof CredentialFailure)
    return Object.assign(
      new CollabError(
        'storage_unavailable',
        'The server has no valid keys for the object store: the change was not confirmed',
      ),
      { cause: error },
    );
  return null;
}
