import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** What the operating system tells of another process. */
export interface ProcessInfo {
  /** Program and first argument, such as `collab tail`, without anything that may be secret; null where it is not told. */
  readonly command: string | null;
  /** Whether it has been stopped, by SIGSTOP or Ctrl-Z. */
  readonly stopped: boolean;
}

/** Looks a process up in /proc; on systems without it, and for a process that has ended, nothing is known. */
export function processInfo(pid: number): ProcessInfo {
  const stat = read(`/proc/${pid}/stat`);
  // The state follows the name, which stands in parentheses and may contain some.
  const state = stat?.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3);
  return { command: commandOf(read(`/proc/${pid}/cmdline`)), stopped: state === 'T' || state === 't' };
}

function commandOf(line: string | null): string | null {
  const words = (line ?? '').split('\0').filter((word) => word !== '');
  const script = words.findIndex((word, at) => at > 0 && !word.startsWith('-'));
  const [program, argument] = /(?:^|\/)node$/.test(words[0] ?? '') && script > 0 ? words.slice(script) : words;
  if (program === undefined) return null;
  const name = basename(program).replace(/\.(?:js|ts)$/, '');
  return argument === undefined || argument.startsWith('-') ? name : `${name} ${argument}`;
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
