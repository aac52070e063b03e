import { readFileSync } from 'node:fs';

/** Nanoseconds since the start of the main thread of this process: running, and waiting for a CPU while it could run. */
interface CpuTimes {
  readonly running: number;
  readonly waiting: number;
}

/**
 * Starts to observe the main thread of this process. The returned function tells whether it has waited for a CPU longer than it
 * has run since then, because other threads of the machine were running; false where the system does not say (no
 * /proc/self/schedstat).
 */
export function watchCpu(): () => boolean {
  const before = cpuTimes();
  return () => {
    const now = cpuTimes();
    return before !== null && now !== null && now.waiting - before.waiting > now.running - before.running;
  };
}

/** Reads /proc/self/schedstat: https://docs.kernel.org/scheduler/sched-stats.html#proc-pid-schedstat */
function cpuTimes(): CpuTimes | null {
  try {
    const [running, waiting] = readFileSync('/proc/self/schedstat', 'utf8').split(' ').map(Number);
    return running === undefined || waiting === undefined ? null : { running, waiting };
  } catch {
    return null;
  }
}
