import { asCollabError, CollabError } from './errors.ts';

/**
 * What `start` resolves with. Its failures become `CollabError`s. Rejects with `aborted` as soon as the signal aborts,
 * and calls `stop` then; if the signal has aborted already, `start` is not called.
 */
export function untilAborted<T>(
  signal: AbortSignal | undefined,
  what: string,
  start: () => Promise<T>,
  stop?: () => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(new CollabError('aborted', `${what} was cancelled.`));
      stop?.();
    };
    if (signal?.aborted === true) return abort();
    signal?.addEventListener('abort', abort);
    void start()
      .then(resolve, (thrown) => reject(asCollabError(thrown, what)))
      .finally(() => signal?.removeEventListener('abort', abort));
  });
}
