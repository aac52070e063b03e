import { readdirSync, readFileSync } from 'node:fs';
import { readProcessStat, readStatFields } from '../../src/lib/process/process-stat.ts';

/** A process and all its descendants, as /proc shows them now. */
export function processTree(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    const parent = readProcessStat(pid)?.parent;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** Total resident memory of the processes in bytes. */
export function residentBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + residentBytesOf(pid), 0);
}

/** CPU time of the processes in milliseconds, over all threads. */
export function busyMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + busyMsOf(pid), 0);
}

/** The command line of a process, its arguments separated by NUL; empty if it has ended. */
export function commandOf(pid: number): string {
  return readProc(`/proc/${pid}/cmdline`) ?? '';
}

/**
 * User and system time of a process and of the children it has waited for, in ticks: fields 14 to 17 of proc(5). Null
 * if it has ended.
 */
export function ticksOf(pid: number | 'self'): [number, number, number, number] | null {
  const fields = readStatFields(pid);
  if (fields === null) return null;
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11, 15).map(Number);
  return [user, system, childrenUser, childrenSystem];
}

function residentBytesOf(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(`/proc/${pid}/status`) ?? '');
  return line === null ? 0 : Number(line[1]) * 1024;
}

function busyMsOf(pid: number): number {
  let sum = 0;
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      sum += Number((readProc(`/proc/${pid}/task/${thread}/schedstat`) ?? '0').split(' ')[0]) / 1e6;
    }
  } catch {
    return sum;
  }
  return sum;
}

/** Reads a file of /proc; null if its process has ended. */
export function readProc(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
