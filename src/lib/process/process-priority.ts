import { readdirSync } from 'node:fs';
import { constants, setPriority } from 'node:os';

/**
 * Lowers the CPU priority of all threads of this process, so that other processes run first. Has no effect where the
 * system does not allow it.
 */
export function lowerPriority(): void {
  for (const thread of threads()) {
    try {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    } catch {
      // The thread has ended meanwhile, or the system does not allow it.
    }
  }
}

/** Linux has a priority per thread. New threads inherit it from the thread that creates them. */
function threads(): number[] {
  try {
    return readdirSync('/proc/self/task').map(Number);
  } catch {
    return [process.pid];
  }
}
