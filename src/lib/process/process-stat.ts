import { readFileSync } from 'node:fs';

/** The fields of /proc/<pid>/stat that are used. */
export interface ProcessStat {
  /** One letter: `R` running, `S` sleeping, `T` stopped by a signal, `t` stopped by a debugger, `Z` zombie. */
  readonly state: string;
  /** Id of the parent (field 4). */
  readonly parent: number;
  /** Clock ticks that its threads have run, in user mode and in the kernel (fields 14 and 15). */
  readonly cpuTicks: number;
  /** Clock ticks from boot to the start of the process (field 22). */
  readonly startTime: string;
}

/**
 * The fields of /proc/<pid>/stat from field 3 of proc(5) on, the state. Null if the process does not exist or the
 * system has no /proc.
 */
export function readStatFields(pid: number | 'self'): readonly string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field, the program's name, is in parentheses and may itself contain spaces and parentheses.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}

/** Reads /proc/<pid>/stat. Null if the process does not exist or the system has no /proc. */
export function readProcessStat(pid: number): ProcessStat | null {
  const fields = readStatFields(pid);
  const [state, startTime] = [fields?.[0], fields?.[19]];
  if (fields === null || state === undefined || startTime === undefined) return null;
  return { state, parent: Number(fields[1]), cpuTicks: Number(fields[11]) + Number(fields[12]), startTime };
}

/** Whether a process was started by this one, or by one that this one has started, and so on; false if unknown. */
export function isDescendant(pid: number): boolean {
  for (let next: number | undefined = pid; next !== undefined && next > 0; next = readProcessStat(next)?.parent)
    if (next === process.pid) return true;
  return false;
}
