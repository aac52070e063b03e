import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long one turn of the event loop may take, in milliseconds, before work that can pause lets other requests go first. */
const TURN_MS = 25;

/** When the running turn was first seen, by `performance.now`; null once it has ended. */
let seenAt: number | null = null;

/**
 * Call it between the parts of a long piece of work. Returns a promise to await if the running turn of the event loop, of all
 * work of this process, has taken 25 ms since the first call in it; otherwise undefined, without any cost worth saving.
 */
export function pauseInLongTurn(): Promise<void> | undefined {
  const now = performance.now();
  if (seenAt === null) {
    seenAt = now;
    setImmediate(() => (seenAt = null));
    return undefined;
  }
  return now - seenAt < TURN_MS ? undefined : nextTurn();
}
