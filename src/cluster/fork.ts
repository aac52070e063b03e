import { fork, type StdioOptions } from 'node:child_process';
import type { LogOutput } from '../observability/log.ts';
import { parentChannel } from './channel.ts';
import type { Role } from './messages.ts';
import type { WorkerEnd, WorkerProcess } from './worker.ts';

/** The environment variable with the role of a worker process. */
export const ROLE_VARIABLE = 'COLLAB_ROLE';

/**
 * V8 lets the heap for new objects grow to 48 MB per process in a burst and never shrinks it. With semi-spaces of 4 MB a
 * server with 3 000 idle sockets needs 20 MB less. Options that the operator sets come later and override these.
 */
const HEAP_OPTIONS = ['--max-semi-space-size=4'];

/** After a process has exited, messages still in its channel are awaited for this long at most. */
const FINAL_MESSAGES_MS = 1_000;

/**
 * Starts `entry` as a worker process, which ends when this process does.
 *
 * @param output the file descriptor of this process that becomes the worker's standard output, for its log
 */
export function forkWorker(entry: string, role: Role, output: LogOutput): WorkerProcess {
  const stdio: StdioOptions = ['inherit', output, 'inherit', 'ipc'];
  const child = fork(entry, [], { stdio, execArgv: [...HEAP_OPTIONS, ...process.execArgv], env: { ...process.env, [ROLE_VARIABLE]: role } });
  const channel = parentChannel(child);
  const ended = new Promise<WorkerEnd>((resolve) => {
    child.once('exit', (code, signal) => {
      channel.onClose(() => resolve({ code, signal }));
      setTimeout(resolve, FINAL_MESSAGES_MS, { code, signal }).unref();
    });
    // Without a pid the fork itself failed, and 'exit' will not follow.
    child.on('error', () => child.pid === undefined && resolve({ code: null, signal: null }));
  });
  return { pid: child.pid, channel, ended, kill: () => child.kill('SIGKILL') };
}
