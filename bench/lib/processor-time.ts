import { busyMs, readProc, ticksOf } from './processes.ts';

/**
 * Processor time of one process, over all its threads, also those that have ended, and of children it has waited for.
 */
export interface ProcessTime {
  /** `primary`, or the role of a worker; `server` for a server of one process. */
  readonly role: string;
  readonly userMs: number;
  readonly systemMs: number;
}

/** Kernel ticks in `/proc` last this long, in milliseconds, on every Linux on which Node runs. */
const TICK_MS = 10;

/**
 * The processor time of each process up to now, by pid; those that have ended are left out. The sum of a process is
 * exact where the kernel counts it in nanoseconds (`schedstat`, which covers the threads that run); user and system
 * time divide it as the ticks do.
 */
export function processTimes(pids: readonly number[]): Map<number, ProcessTime> {
  const times = new Map<number, ProcessTime>();
  for (const pid of pids) {
    const ticks = ticksOf(pid);
    if (ticks === null) continue;
    const [user, system, childrenUser, childrenSystem] = ticks;
    const counted = (user + system) * TICK_MS;
    // Threads that have ended are missing in schedstat, and the last tick in the ticks.
    const exact = Math.max(counted, busyMs([pid]));
    const scale = counted === 0 ? 1 : exact / counted;
    times.set(pid, {
      role: roleOf(pid),
      userMs: user * TICK_MS * scale + childrenUser * TICK_MS,
      systemMs: system * TICK_MS * scale + childrenSystem * TICK_MS,
    });
  }
  return times;
}

/**
 * What processes have used from one moment to another, by role; a process that has begun meanwhile counts from its
 * start.
 */
export function timesBetween(
  before: ReadonlyMap<number, ProcessTime>,
  after: ReadonlyMap<number, ProcessTime>,
): ProcessTime[] {
  const sums = new Map<string, { userMs: number; systemMs: number }>();
  for (const [pid, { role, userMs, systemMs }] of after) {
    const sum = sums.get(role) ?? { userMs: 0, systemMs: 0 };
    const earlier = before.get(pid);
    sum.userMs += userMs - (earlier?.userMs ?? 0);
    sum.systemMs += systemMs - (earlier?.systemMs ?? 0);
    sums.set(role, sum);
  }
  return [...sums].map(([role, sum]) => ({ role, ...sum }));
}

function roleOf(pid: number): string {
  const role = /(?:^|\0)COLLAB_ROLE=([^\0]*)/.exec(readProc(`/proc/${pid}/environ`) ?? '')?.[1];
  if (role !== undefined) return role;
  return (readProc(`/proc/${pid}/cmdline`) ?? '').includes('\0start\0') ? 'primary' : 'server';
}
