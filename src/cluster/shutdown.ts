import { withTimeout } from '../lib/concurrency/deadline.ts';
import type { Logger } from '../observability/log.ts';

/** One step of a shutdown. */
export interface ShutdownStep {
  readonly name: string;
  readonly run: () => Promise<void> | void;
  /** Milliseconds after which the next step starts even if this one has not finished. */
  readonly withinMs: number;
}

/**
 * Runs the steps in order. A step that throws or exceeds its time is logged and skipped, so that the last step is
 * always reached in bounded time.
 */
export async function shutDown(steps: readonly ShutdownStep[], log: Logger): Promise<void> {
  for (const { name, run, withinMs } of steps) {
    try {
      await withTimeout(withinMs, Promise.resolve(run()), () => {
        throw new Error(`not finished within ${withinMs} ms`);
      });
    } catch (error) {
      log.error(
        { err: error, step: name },
        'a step of the shutdown failed or took too long; the shutdown continues with the next step',
      );
    }
  }
}

/** The longest duration of an event loop iteration that counts as idle. */
const IDLE_MS = 0.03;
/** For this long only such iterations count. A loop under full load has one every few milliseconds. */
const STRICT_MS = 200;
const TIMEOUT_MS = 1_000;

/**
 * Resolves right after an idle iteration of the event loop. Connections that were waiting have just been accepted then,
 * so closing the listen socket resets at most those of the last few microseconds. After 200 ms longer iterations count
 * too, with a bound that grows; after a second it resolves in any case.
 */
export function idleIteration(): Promise<void> {
  return new Promise((resolve) => {
    const startedAt = performance.now();
    let last = startedAt;
    const check = (): void => {
      const now = performance.now();
      const waited = now - startedAt;
      const bound = Math.max(IDLE_MS, (waited - STRICT_MS) / 1_000);
      if (now - last < bound || waited > TIMEOUT_MS) return resolve();
      last = now;
      setImmediate(check);
    };
    // The current iteration has already begun, so only the next one can be measured.
    setImmediate(() => {
      last = performance.now();
      setImmediate(check);
    });
  });
}
