import { type Blobs, RetentionLostError } from '../../ports/blobs.ts';
import { Failure } from '../failure.ts';

/** How often the lease is renewed, in milliseconds: a fifth of its term. */
const RENEW_MS = 60_000;

/**
 * Runs `work` under a retention lease: meanwhile no server deletes a file that a record named at the start.
 *
 * @param work gets a signal that is aborted with `signal`, and when the lease is lost
 * @param renewMs how often the lease is renewed, in milliseconds; for tests
 * @throws {Failure} if the lease was lost before `work` had ended, so that files may be missing from what it has copied
 */
export async function whileFilesAreKept<T>(
  blobs: Blobs,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  renewMs = RENEW_MS,
): Promise<T> {
  const lease = await blobs.retain();
  const lost = new AbortController();
  const renewing = setInterval(() => {
    // Any other failure may pass; the last renewal decides.
    void lease.renew().catch((error: unknown) => error instanceof RetentionLostError && lost.abort(lostFailure()));
  }, renewMs);
  try {
    const result = await work(AbortSignal.any([signal, lost.signal]));
    await lease.renew();
    return result;
  } catch (error) {
    throw error instanceof RetentionLostError ? lostFailure() : error;
  } finally {
    clearInterval(renewing);
    await lease.release();
  }
}

function lostFailure(): Failure {
  return new Failure(
    'This command was stopped for more than five minutes, and the server may have deleted files meanwhile, so no ' +
      'backup was written.',
    ['Run the command again, and let it run to its end.'],
  );
}
