import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../observability/log.ts';
import { EngineError } from '../ports/engine-error.ts';

/** How long a worker waits until it tries to reach an engine again, in milliseconds. */
const RETRY_MS = 1_000;

/**
 * Returns what `open` resolves with. While it rejects because an engine cannot be reached, tries again every second, and
 * says so once. Rejects with any other error, and at once when `stop` is aborted: an attempt that is under way then goes
 * on until the process ends.
 */
export async function whenReachable<T>(open: () => Promise<T>, log: Logger, stop: AbortSignal): Promise<T> {
  stop.throwIfAborted();
  const stopped = new Promise<never>((_, reject) => stop.addEventListener('abort', () => reject(stop.reason as Error)));
  stopped.catch(() => {});
  for (let tries = 1; ; tries++) {
    try {
      return await Promise.race([open(), stopped]);
    } catch (error) {
      if (!(error instanceof EngineError) || !error.retry) throw error;
      if (tries === 1) log.warn({ option: error.option }, `${error.message}; this worker waits for it`);
      await delay(RETRY_MS, undefined, { signal: stop });
    }
  }
}
