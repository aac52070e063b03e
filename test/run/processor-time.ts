import { readdirSync, readFileSync } from 'node:fs';

/** Marks the processes of a job, with what they start, in their environment. */
export const JOB_VARIABLE = 'TEST_JOB';

/** The pids of the processes that run with this mark. */
export function markedPids(job: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`${JOB_VARIABLE}=${job}\0`);
      } catch {
        // It has ended, or belongs to somebody else.
        return false;
      }
    })
    .map(Number);
}

/**
 * Processor time, in seconds, of the processes of a job that run and of those that they have waited for. Without what
 * ended after its parent did. Null where there is no `/proc`.
 */
export function jobCpuSeconds(job: string): number | null {
  try {
    return markedPids(job).reduce((sum, pid) => sum + ownAndWaitedFor(pid), 0);
  } catch {
    return null;
  }
}

/**
 * Processor time, in seconds, of the children of this process that have ended, and of theirs; null where there is no
 * `/proc`.
 */
export function childrenCpuSeconds(): number | null {
  try {
    const { childrenS } = timesOf('self');
    return childrenS;
  } catch {
    return null;
  }
}

function ownAndWaitedFor(pid: number): number {
  try {
    const { ownS, childrenS } = timesOf(pid);
    return ownS + childrenS;
  } catch {
    // It has ended.
    return 0;
  }
}

function timesOf(pid: number | 'self'): { ownS: number; childrenS: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .map(Number);
  // Fields 14 to 17 of proc(5), in ticks of 10 ms.
  return { ownS: (user + system) / 100, childrenS: (childrenUser + childrenSystem) / 100 };
}
