import { collectWhenIdle } from '../lib/idle-gc.ts';
import type { Logger } from '../observability/log.ts';
import { type ProcessChannel, childChannel } from '../cluster/channel.ts';
import { StartError, WorkerExit } from '../cluster/exit.ts';
import { shutDown, type Step } from '../cluster/lifecycle.ts';
import type { DrainReason, ReadyData, StartData } from '../cluster/messages.ts';

/** A worker that serves, as its process knows it. */
export interface RunningWorker {
  readonly ready: ReadyData;
  readonly log: Logger;
  /** How it ends when it is told to. */
  drain(reason: DrainReason): readonly Step[];
}

/** Makes a worker of what the primary says. */
export type StartWorker = (start: StartData, channel: ProcessChannel) => Promise<RunningWorker>;

/**
 * The life of a process that the primary has forked: it does what it is told through the channel and nothing else.
 * When the primary is gone it stops at once; what was answered is on disk. A throw that nobody caught ends it, logged.
 */
export function runWorkerProcess(startWorker: StartWorker): void {
  // A terminal, or a service manager, sends these to every process of the group: only the primary decides.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});

  const channel = childChannel();
  let log: Logger | null = null;
  const fail = (error: unknown): void => {
    const reason = error instanceof Error ? error.message : String(error);
    const permanent = error instanceof StartError;
    if (log !== null) log.fatal({ err: error }, 'this worker has failed and ends');
    // The primary reports a StartError in its own words; of anything else the stack is needed.
    else if (!permanent) process.stderr.write(`${error instanceof Error ? error.stack : reason}\n`);
    channel.send({ type: 'failed', data: { reason, permanent } }, () => process.exit(WorkerExit.logged));
  };
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);
  // Not process.exit: with a commit under way it can hang in the store's native teardown, and nobody is left to notice.
  channel.onClose(() => process.kill(process.pid, 'SIGKILL'));

  collectWhenIdle();
  let worker: Promise<RunningWorker> | null = null;
  channel.onMessage((message) => {
    if (message.type === 'start' && worker === null) {
      worker = startWorker(message.data, channel);
      worker.then((running) => {
        log = running.log;
        channel.send({ type: 'ready', data: running.ready });
      }, fail);
    }
    if (message.type === 'ping') channel.send({ type: 'pong', data: {} });
    if (message.type === 'drain') void end(worker, message.data.reason);
  });
}

async function end(worker: Promise<RunningWorker> | null, reason: DrainReason): Promise<void> {
  // One that cannot start has failed already, and says so by itself.
  const running = await worker?.catch(() => null);
  if (running !== null && running !== undefined) await shutDown(running.drain(reason), running.log);
  process.exit(WorkerExit.intended);
}
