import { readdirSync } from 'node:fs';
import { constants, setPriority } from 'node:os';

/**
 * Lets this process wait while others want the processors: what it does may be slow, what they do must not be. Without
 * effect where the system doesn't allow it.
 */
export function lowerPriority(): void {
  for (const thread of threads()) {
    try {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    } catch {
      // A thread that has ended meanwhile, or a system that keeps priorities to itself.
    }
  }
}

/** On Linux every thread has a priority of its own, which new ones take over from the thread that makes them. */
function threads(): number[] {
  try {
    return readdirSync('/proc/self/task').map(Number);
  } catch {
    return [process.pid];
  }
}
