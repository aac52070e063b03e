import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../observability/log.ts';

/** One step of a shutdown. */
export interface Step {
  readonly name: string;
  readonly run: () => Promise<void> | void;
  /** Milliseconds after which the next step begins all the same. */
  readonly withinMs: number;
}

/**
 * Runs the steps in order. A step that throws or takes too long is logged and passed over, so that the last one is
 * reached in bounded time whatever happens.
 */
export async function shutDown(steps: readonly Step[], log: Logger): Promise<void> {
  for (const { name, run, withinMs } of steps) {
    try {
      await within(withinMs, async () => run());
    } catch (error) {
      log.error({ err: error, step: name }, 'a step of the shutdown failed; going on');
    }
  }
}

async function within(ms: number, run: () => Promise<void>): Promise<void> {
  const timer = new AbortController();
  const late = delay(ms, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`not done within ${ms} ms`);
  });
  try {
    await Promise.race([run(), late]);
  } finally {
    // The race is over: nobody waits for the timer any more, so its end is no failure.
    late.catch(() => {});
    timer.abort();
  }
}

/** What an iteration of the event loop takes that finds hardly anything to do. */
const QUIET_MS = 0.03;
/** For this long only such an iteration counts as quiet; a loop under full load has one every few milliseconds. */
const STRICT_MS = 200;
const QUIET_PATIENCE_MS = 1_000;

/**
 * Resolves right after an iteration of the event loop that found hardly anything to do: the connections that waited to be
 * accepted have just been, so closing the listen socket now resets none but those of the last few microseconds. After
 * 200 ms longer iterations count too, the longer the later; after a second the wait is over.
 */
export function quietMoment(): Promise<void> {
  return new Promise((resolve) => {
    const begun = performance.now();
    let last = begun;
    const look = (): void => {
      const now = performance.now();
      const waited = now - begun;
      const bound = Math.max(QUIET_MS, (waited - STRICT_MS) / 1_000);
      if (now - last < bound || waited > QUIET_PATIENCE_MS) return resolve();
      last = now;
      setImmediate(look);
    };
    // The first iteration is cut off at its beginning: it counts from the second on.
    setImmediate(() => {
      last = performance.now();
      setImmediate(look);
    });
  });
}
