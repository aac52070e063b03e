import { fork, type StdioOptions } from 'node:child_process';
import type { LogOutput } from '../observability/log.ts';
import { parentChannel } from './channel.ts';
import type { Role } from './messages.ts';
import type { WorkerEnd, WorkerProcess } from './worker.ts';

/** The environment variable that tells a worker process its role. */
export const ROLE_VARIABLE = 'COLLAB_ROLE';

/**
 * V8 lets the room for new objects grow to 48 MB a process in a burst and never gives it back: with 4 MB halves a server
 * of 3 000 idle sockets is 20 MB smaller. Options of the operator come after and win.
 */
const SMALL_NURSERY = ['--max-semi-space-size=4'];

/** Last words still in the line when a process has ended are waited for, this long at most. */
const LAST_WORDS_MS = 1_000;

/**
 * Starts `entry` as a worker process, which ends when this process does.
 *
 * @param output the file descriptor of this process that is its standard output, where its log goes
 */
export function forkWorker(entry: string, role: Role, output: LogOutput): WorkerProcess {
  const stdio: StdioOptions = ['inherit', output, 'inherit', 'ipc'];
  const child = fork(entry, [], { stdio, execArgv: [...SMALL_NURSERY, ...process.execArgv], env: { ...process.env, [ROLE_VARIABLE]: role } });
  const channel = parentChannel(child);
  const ended = new Promise<WorkerEnd>((resolve) => {
    child.once('exit', (code, signal) => {
      channel.onClose(() => resolve({ code, signal }));
      setTimeout(resolve, LAST_WORDS_MS, { code, signal }).unref();
    });
    // Without a pid the fork itself failed, and no exit follows.
    child.on('error', () => child.pid === undefined && resolve({ code: null, signal: null }));
  });
  return { pid: child.pid, channel, ended, kill: () => child.kill('SIGKILL') };
}
