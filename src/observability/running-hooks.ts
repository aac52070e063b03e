import { readCommandLine } from '../lib/process/process-info.ts';

/** A hook of a plugin: its plugin, and its name as in the metrics. */
export interface HookName {
  readonly plugin: string;
  readonly hook: string;
}

const PREFIX = 'collab: ';
const SEPARATOR = ', ';
/** The command line of this process, which is its title while no hook runs. */
const COMMAND = [process.argv0, ...process.execArgv, ...process.argv.slice(1)].join(' ');

/** Calls under way of each hook, as `plugin hook`, the last one that has begun at the end. */
const running = new Map<string, number>();

/**
 * Shows in the title of this process, which `ps` and the primary read, that a call of a hook has begun: a process whose
 * event loop a hook blocks cannot tell it in any other way. PostgreSQL shows its queries like this. Takes 1 µs. Names
 * that no longer fit into the space of the command line are cut off. Call `endHook` when it has ended.
 */
export function beginHook({ plugin, hook }: HookName): void {
  const name = `${plugin} ${hook}`;
  const calls = running.get(name) ?? 0;
  running.set(name, calls + 1);
  if (calls === 0) showRunning();
}

/** Shows that a call of a hook has ended. */
export function endHook({ plugin, hook }: HookName): void {
  const name = `${plugin} ${hook}`;
  const calls = running.get(name) ?? 0;
  if (calls > 1) {
    running.set(name, calls - 1);
    return;
  }
  running.delete(name);
  showRunning();
}

/**
 * The hooks that a process of this server runs by its title; none if the system has no /proc, or the process has ended.
 */
export function readRunningHooks(pid: number | undefined): readonly HookName[] {
  const [title = ''] = pid === undefined ? [] : readCommandLine(pid).split('\0');
  if (!title.startsWith(PREFIX)) return [];
  return title
    .slice(PREFIX.length)
    .split(SEPARATOR)
    .map((name) => {
      const space = name.indexOf(' ');
      return space === -1 ? { plugin: name, hook: '' } : { plugin: name.slice(0, space), hook: name.slice(space + 1) };
    });
}

function showRunning(): void {
  process.title = running.size === 0 ? COMMAND : `${PREFIX}${[...running.keys()].toReversed().join(SEPARATOR)}`;
}
