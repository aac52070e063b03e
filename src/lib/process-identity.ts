import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** What tells one running process from every other, also from a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks from boot to the start of the process; null where the system doesn't tell. */
  readonly startTime: string | null;
  readonly host: string;
  /** Names this run of the kernel; null where the system doesn't tell. */
  readonly boot: string | null;
  /** The namespace (container) in which the pid means something; null where the system doesn't tell. */
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

/** An identity from its JSON text; null when the text is none. */
export function parseProcessIdentity(text: string): ProcessIdentity | null {
  const parsed: unknown = tryTo(() => JSON.parse(text) as unknown);
  if (typeof parsed !== 'object' || parsed === null) return null;
  const { pid, host } = parsed as Partial<ProcessIdentity>;
  return Number.isSafeInteger(pid) && typeof host === 'string' ? (parsed as ProcessIdentity) : null;
}

/** Whether that process runs now; `unsure` when it would be out of our sight. */
export function livenessOf(other: ProcessIdentity): 'alive' | 'dead' | 'unsure' {
  const self = currentProcess();
  if (other.boot !== self.boot) return other.host === self.host ? 'dead' : 'unsure';
  if (other.namespace !== self.namespace || (self.boot === null && other.host !== self.host)) return 'unsure';
  return exists(other.pid) && startTime(other.pid) === other.startTime ? 'alive' : 'dead';
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Whether a signal such as SIGSTOP has stopped a process; false where the system doesn't tell. */
export function isStopped(pid: number | undefined): boolean {
  return pid !== undefined && statFields(pid)?.[0] === 'T';
}

/** Field 22 of /proc/<pid>/stat; null too for a process that has ended and waits for its parent to notice. */
function startTime(pid: number): string | null {
  const fields = statFields(pid);
  return fields === null || fields[0] === 'Z' ? null : (fields[19] ?? null);
}

/** The fields of /proc/<pid>/stat from the third, the state, on; the second, the program's name, may hold spaces and brackets. */
function statFields(pid: number): string[] | null {
  return tryTo(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  });
}

function tryTo<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
