import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname, sep } from 'node:path';

const CALLS =
  'openat,mkdir,write,pwrite64,writev,pwritev,pwritev2,ftruncate,copy_file_range,sendfile,fsync,fdatasync,rename,renameat,renameat2,link,unlink,unlinkat,rmdir';

/** Why system calls cannot be looked at here; false where they can. */
export function withoutStrace(): string | false {
  try {
    execFileSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'strace is not installed, or may not trace here';
  }
}

/** One call that succeeded. */
interface Call {
  readonly name: string;
  readonly args: string;
  /** Where its file descriptors lead, the one that it returned last. */
  readonly descriptors: readonly string[];
  /** The paths among its arguments. */
  readonly paths: readonly string[];
}

/** What a power cut can take at some moment of a command. */
export interface Unflushed {
  /** Files with bytes that were not flushed. */
  readonly bytes: ReadonlySet<string>;
  /** Files and folders whose name was not flushed. */
  readonly names: ReadonlySet<string>;
}

/**
 * Runs a command under strace, and returns the calls that it made until its first output.
 *
 * @param log where strace may write
 * @param end the signal that ends the command then; none for one that ends by itself
 */
export async function callsBeforeOutput(
  log: string,
  command: readonly string[],
  end?: { signal: NodeJS.Signals; pidOf: (output: string) => number },
): Promise<Call[]> {
  const child = spawn(
    'strace',
    ['-f', '--seccomp-bpf', '-y', '-s', '32', '-o', log, '-e', `trace=${CALLS}`, ...command],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const closed = once(child, 'close');
  const [output] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  if (end !== undefined) process.kill(end.pidOf(output), end.signal);
  await closed;
  const calls = parse(readFileSync(log, 'utf8'));
  return calls.slice(
    0,
    calls.findIndex(({ name, args }) => name.startsWith('write') && args.startsWith('1<')),
  );
}

/**
 * What below `root` is not on the disk for sure after these calls, as POSIX promises it. Files opened with O_DSYNC
 * count as flushed by each write.
 */
export function unflushed(calls: readonly Call[], root: string): Unflushed {
  const bytes = new Set<string>();
  const names = new Set<string>();
  const known = new Set<string>();
  const move = (set: Set<string>, from: string, to: string): void => {
    for (const path of [...set]) {
      if (path !== from && !path.startsWith(from + sep)) continue;
      set.delete(path);
      set.add(to + path.slice(from.length));
    }
  };
  const forget = (path: string): void => {
    for (const set of [bytes, names, known])
      for (const held of [...set]) if (held === path || held.startsWith(path + sep)) set.delete(held);
  };
  const made = (path: string): void => {
    if (!known.has(path)) names.add(path);
    known.add(path);
  };
  const synchronous = new Set<string>();
  for (const { name, args, descriptors, paths } of calls) {
    const [from = '', to = ''] = paths;
    const [descriptor = ''] = descriptors;
    if (name === 'openat') {
      const path = descriptors.at(-1) ?? '';
      if (args.includes('O_CREAT')) made(path);
      if (args.includes('O_TRUNC')) bytes.add(path);
      if (args.includes('O_DSYNC')) synchronous.add(descriptorOf(args));
      else synchronous.delete(descriptorOf(args));
    } else if (name === 'mkdir') made(from);
    else if (name === 'fsync' || name === 'fdatasync') {
      bytes.delete(descriptor);
      for (const path of [...names]) if (dirname(path) === descriptor) names.delete(path);
    } else if (name.startsWith('rename')) {
      forget(to);
      for (const set of [bytes, names, known]) move(set, from, to);
      names.add(to);
      known.add(to);
    } else if (name === 'link') made(to);
    else if (name.startsWith('unlink') || name === 'rmdir') forget(from);
    else if (!synchronous.has(`${/^\d+/.exec(args)?.[0]} ${descriptor}`)) bytes.add(descriptor);
  }
  const below = (set: Set<string>): ReadonlySet<string> =>
    new Set([...set].filter((path) => path === root || path.startsWith(root + sep)));
  return { bytes: below(bytes), names: below(names) };
}

/** The number and path of the descriptor that an `openat` returned. */
function descriptorOf(args: string): string {
  const [, number = '', path = ''] = /= (\d+)<([^>]*)>$/.exec(args) ?? [];
  return `${number} ${path}`;
}

function parse(text: string): Call[] {
  const begun = new Map<string, string>();
  const calls: Call[] = [];
  for (const line of text.split('\n')) {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (rest.endsWith('<unfinished ...>')) {
      begun.set(thread, rest.slice(0, -'<unfinished ...>'.length));
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    const whole = resumed === null ? rest : (begun.get(thread) ?? '') + (resumed[1] ?? '');
    const [, name, args] = /^(\w+)\((.*)$/.exec(whole) ?? [];
    if (name === undefined || args === undefined || / = -1 E/.test(args) || / = \?/.test(args)) continue;
    const descriptors = [...args.matchAll(/(?:AT_FDCWD|\d+)<([^>]*)>/g)].map(([, path = '']) => path);
    const paths = [...args.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, path = '']) => path);
    calls.push({ name, args, descriptors, paths });
  }
  return calls;
}
