import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { readProcessStat } from './process-stat.ts';

/** Distinguishes one running process from every other, including a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks from boot to the start of the process; null if the system has no /proc. */
  readonly startTime: string | null;
  readonly host: string;
  /** The boot id of the kernel; null if the system has no /proc. */
  readonly boot: string | null;
  /** The pid namespace (container) that the pid belongs to; null if the system has no /proc. */
  readonly namespace: string | null;
}

/** The identity of this process. */
export function currentProcess(): ProcessIdentity {
  return {
    pid: process.pid,
    startTime: startTime(process.pid),
    host: hostname(),
    boot: tryTo(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    namespace: tryTo(() => readlinkSync('/proc/self/ns/pid')),
  };
}

/** Parses the JSON text of an identity; null if it is not one. */
export function parseProcessIdentity(text: string): ProcessIdentity | null {
  const parsed: unknown = tryTo(() => JSON.parse(text) as unknown);
  if (typeof parsed !== 'object' || parsed === null) return null;
  const { pid, host } = parsed as Partial<ProcessIdentity>;
  return Number.isSafeInteger(pid) && typeof host === 'string' ? (parsed as ProcessIdentity) : null;
}

/** Whether the process is running now; `unsure` if it may be on another machine or in another container. */
export function livenessOf(other: ProcessIdentity): 'alive' | 'dead' | 'unsure' {
  const self = currentProcess();
  if (other.boot !== self.boot) return other.host === self.host ? 'dead' : 'unsure';
  if (other.namespace !== self.namespace || (self.boot === null && other.host !== self.host)) return 'unsure';
  return processExists(other.pid) && startTime(other.pid) === other.startTime ? 'alive' : 'dead';
}

/** Whether a process of this machine, or of this container, has this id; also a zombie. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The start time, or null if the process does not exist or is a zombie. */
function startTime(pid: number): string | null {
  const stat = readProcessStat(pid);
  return stat === null || stat.state === 'Z' ? null : stat.startTime;
}

function tryTo<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
