import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { Shared } from '../../src/ports/shared.ts';
import { DelayedShared } from '../doubles/delayed-shared.ts';

let delayed = false;

/** Makes all shared memory that this process opens from now on answer late. */
export function delayShared(): void {
  delayed = true;
}

/** The shared memory that tests use: a new one in memory whose time is that of `clock`, late after `delayShared`. */
export function newShared(clock: Clock): Shared {
  return maybeLate(new MemoryShared(clock));
}

/** `shared`, which answers late after `delayShared`. */
export function maybeLate(shared: Shared): Shared {
  return delayed ? new DelayedShared(shared) : shared;
}
