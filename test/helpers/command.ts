import type { EventEmitter } from 'node:events';
import { runCli } from '../../src/cli/main.ts';
import { collab as collabApart, collabCommand, type Finished, jsonOf } from './cli.ts';
import { Scope } from '../doubles/scope.ts';

interface CommandOptions {
  /** `COLLAB_*` variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** The working folder while the command runs; that of this process when absent. */
  readonly cwd?: string;
  /**
   * Runs a command of `APART` in this process all the same: for refusals that come before it opens anything, for
   * `status` and `doctor` of a folder that no other process uses meanwhile, or whose store nothing in this process has
   * opened before, and for `plugin` where the code of plugins does not change.
   */
  readonly inside?: boolean;
}

/**
 * What the command that runs now has written. The output of this process itself, such as TAP, is written in another
 * context.
 */
const output = new Scope<Record<'stdout' | 'stderr', Buffer[]>>();
const streams = ['stdout', 'stderr'] as const;
/** Events for which a command leaves listeners, as its process ends. */
const events: readonly (readonly [EventEmitter, string])[] = [
  [process, 'uncaughtException'],
  [process.stdout, 'error'],
  [process.stderr, 'error'],
];

/**
 * Commands that run in a process of their own: those that read the lock files of the store, as closing one gives up all
 * locks of a process on it, also those of LMDB environments that an earlier command has left open; a start, as it may
 * succeed; and those of `plugin`, as a process loads the code of a plugin once, and a new one is given the path of the
 * program.
 */
const APART = new Set(['status', 'doctor', 'start', 'plugin']);

/** Commands run one at a time: they share arguments and exit code of this process. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs one command line as `collab` of cli.ts does, but in this process, which takes a tenth of the time. For commands
 * whose result and output are tested; not for their exit, signals, standard input and crashes, nor for `start`.
 */
export function collab(
  args: readonly string[],
  { inside = false, ...options }: CommandOptions = {},
): Promise<Finished> {
  if (!inside && APART.has(args[0] ?? '')) return collabApart(args, options);
  const finished = last.then(() => run(args, options));
  last = finished.catch(() => {});
  return finished;
}

/** Runs a command as `collab` does. */
export const collabJson = jsonOf<CommandOptions>(collab);

async function run(args: readonly string[], { env = {}, cwd }: CommandOptions): Promise<Finished> {
  const written = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const { argv, exitCode } = process;
  const listeners = events.map(([emitter, event]) => emitter.listeners(event));
  const restore = streams.map(capture);
  process.argv = [process.execPath, collabCommand.at(-1) ?? '', ...args];
  process.exitCode = undefined;
  const variables = process.env;
  const folder = process.cwd();
  process.env = {
    ...Object.fromEntries(Object.entries(variables).filter(([name]) => !name.startsWith('COLLAB_'))),
    ...env,
  };
  if (cwd !== undefined) process.chdir(cwd);
  try {
    const code = await output.run(written, () => runCli(args));
    return { code, stdout: Buffer.concat(written.stdout).toString(), stderr: Buffer.concat(written.stderr).toString() };
  } finally {
    process.chdir(folder);
    Object.assign(process, { argv, exitCode, env: variables });
    for (const undo of restore) undo();
    for (const [at, [emitter, event]] of events.entries()) {
      for (const left of emitter.listeners(event))
        if (listeners[at]?.includes(left) !== true) emitter.off(event, left as () => void);
    }
  }
}

/** Takes what a command writes to a stream of this process. Returns what undoes it. */
function capture(name: (typeof streams)[number]): () => void {
  const stream = process[name];
  const write = stream.write.bind(stream);
  const take = (chunk: Uint8Array | string, encoding?: BufferEncoding | (() => void), done?: () => void): boolean => {
    const written = output.get();
    if (written === undefined)
      return typeof encoding === 'function' ? write(chunk, encoding) : write(chunk, encoding, done);
    written[name].push(
      typeof chunk === 'string'
        ? Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8')
        : Buffer.from(chunk),
    );
    const then = typeof encoding === 'function' ? encoding : done;
    if (then !== undefined) setImmediate(then);
    return true;
  };
  stream.write = take;
  return () => {
    stream.write = write;
  };
}
