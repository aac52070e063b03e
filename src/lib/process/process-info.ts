import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { readProcessStat } from './process-stat.ts';

/** Information of the operating system about another process. */
export interface ProcessInfo {
  /** Program and first argument, such as `collab tail`, without arguments that may be secret; null if unknown. */
  readonly command: string | null;
  /** Whether it is stopped, by SIGSTOP, Ctrl-Z or a debugger. */
  readonly stopped: boolean;
}

/** Reads /proc. If the system has none, or the process has ended, returns `{ command: null, stopped: false }`. */
export function processInfo(pid: number): ProcessInfo {
  const state = readProcessStat(pid)?.state;
  return { command: commandOf(readCommandLine(pid)), stopped: state === 'T' || state === 't' };
}

function commandOf(line: string): string | null {
  const words = line.split('\0').filter((word) => word !== '');
  const script = words.findIndex((word, at) => at > 0 && !word.startsWith('-'));
  const [program, argument] = /(?:^|\/)node$/.test(words[0] ?? '') && script > 0 ? words.slice(script) : words;
  if (program === undefined) return null;
  const name = basename(program).replace(/\.(?:js|ts)$/, '');
  return argument === undefined || argument.startsWith('-') ? name : `${name} ${argument}`;
}

/** The arguments of a process, or its title, each followed by a NUL; '' if unknown. */
export function readCommandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** Whether an environment variable was set when a process was started; false if that is not known. */
export function wasStartedWith(pid: number, variable: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8')
      .split('\0')
      .some((entry) => entry.startsWith(`${variable}=`));
  } catch {
    return false;
  }
}
