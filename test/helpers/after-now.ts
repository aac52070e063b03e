import type { Clock } from '../../src/lib/clock.ts';

/** A time after everything that has been committed: a server that starts then takes nothing before it for new. */
export function afterNow(clock: Clock): number {
  return clock.now() + 1;
}
