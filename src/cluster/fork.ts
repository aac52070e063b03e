import { fork } from 'node:child_process';
import { parentChannel } from './channel.ts';
import type { Role } from './messages.ts';
import type { WorkerEnd, WorkerProcess } from './worker.ts';

/** The environment variable that makes the entry run as a worker. */
export const ROLE_VARIABLE = 'COLLAB_ROLE';

/** The HTTP core reads this when its addon loads: its own limit of 4 KiB on a header block refuses honest requests. */
const HEADER_LIMIT = { UWS_HTTP_MAX_HEADERS_SIZE: '16384' };

/** Last words still in the line when a process has ended are waited for, this long at most. */
const LAST_WORDS_MS = 1_000;

/** Starts `entry` again as a worker process. It writes to the same standard output and ends when this process does. */
export function forkWorker(entry: string, role: Role): WorkerProcess {
  const child = fork(entry, [], { env: { ...process.env, ...HEADER_LIMIT, [ROLE_VARIABLE]: role } });
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
