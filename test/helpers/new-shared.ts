import { MemoryShared } from '../../src/adapters/memory/shared.ts';
import type { Shared } from '../../src/ports/shared.ts';
import { DelayedShared } from '../doubles/delayed-shared.ts';

let delayed = false;

/** Makes all shared memory that this process opens from now on answer late. */
export function delayShared(): void {
  delayed = true;
}

/** The shared memory that tests use: `shared`, or a new one in memory, with a delay after `delayShared`. */
export function newShared(shared: Shared = new MemoryShared()): Shared {
  return delayed ? new DelayedShared(shared) : shared;
}
