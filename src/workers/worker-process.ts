import { accessDenialOf } from '../lib/files/access-denial.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Logger } from '../observability/log.ts';
import { type ProcessChannel, childChannel } from '../cluster/channel.ts';
import { ExitCode, StartError, WorkerExit } from '../cluster/exit.ts';
import { EngineError } from '../ports/engine-error.ts';
import { shutDown, type ShutdownStep } from '../cluster/shutdown.ts';
import type { DrainReason, ReadyData, StartData } from '../cluster/messages.ts';

/** A running worker, as seen by its process. */
export interface RunningWorker {
  readonly ready: ReadyData;
  readonly log: Logger;
  /** The plugin that left an error unhandled; null if it was none. Then the worker fails. */
  readonly pluginOfError?: (error: unknown) => string | null;
  /** Resolves with the reason if the worker can no longer work and must be replaced; never if absent. */
  readonly failed?: Promise<Error>;
  /** The steps of its shutdown. */
  drain(reason: DrainReason): readonly ShutdownStep[];
}

/**
 * Starts a worker as the primary's `start` message says. May reject when `stop` is aborted before the worker runs: the
 * process is killed then.
 */
export type StartWorker = (start: StartData, channel: ProcessChannel, stop: AbortSignal) => Promise<RunningWorker>;

/**
 * Runs a process that the primary has forked. The primary controls it through the channel only. If the primary is gone,
 * the process kills itself at once; every answered write is on disk. An uncaught error is logged and ends it, unless a
 * plugin has left it unhandled.
 */
export function runWorkerProcess(startWorker: StartWorker): void {
  // A terminal or service manager sends these to every process of the group, but only the primary decides what to do.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});

  const channel = childChannel();
  let log: Logger | null = null;
  let pluginOfError: (error: unknown) => string | null = () => null;
  const fail = (error: unknown): void => {
    const denial = accessDenialOf(error);
    const reason = denial === null ? messageOf(error) : `${denial.message} ${denial.remedy}`;
    const exitCode = exitCodeOf(error);
    if (log !== null) log.fatal({ err: error }, 'this worker has failed and exits');
    // The primary reports the message of a StartError; for other errors the stack is needed.
    else if (exitCode === null) process.stderr.write(`${error instanceof Error ? error.stack : reason}\n`);
    channel.send({ type: 'failed', data: { reason, exitCode } }, () => process.exit(WorkerExit.logged));
  };
  const onUnhandled = (error: unknown): void => {
    const plugin = pluginOfError(error);
    if (plugin === null) fail(error);
    else log?.error({ err: error, plugin }, 'a plugin left an error unhandled');
  };
  process.on('uncaughtException', onUnhandled);
  process.on('unhandledRejection', onUnhandled);
  channel.onClose(killThisProcess);

  let worker: Promise<RunningWorker> | null = null;
  const stopping = new AbortController();
  channel.onMessage((message) => {
    if (message.type === 'start' && worker === null) {
      worker = startWorker(message.data, channel, stopping.signal);
      worker.then(
        (running) => {
          log = running.log;
          pluginOfError = running.pluginOfError ?? pluginOfError;
          channel.send({ type: 'ready', data: running.ready });
          void running.failed?.then(fail);
        },
        // What it has begun goes on, such as a commit.
        (error: unknown) => (stopping.signal.aborted ? killThisProcess() : fail(error)),
      );
    }
    if (message.type === 'ping') channel.send({ type: 'pong', data: {} });
    if (message.type !== 'drain') return;
    stopping.abort();
    void drainAndExit(worker, message.data.reason);
  });
}

/** The exit code of a start that fails for an error; null if a new worker may not fail for it. */
function exitCodeOf(error: unknown): number | null {
  if (error instanceof StartError) return error.exitCode;
  if (error instanceof EngineError) return error.retry ? null : ExitCode.badConfiguration;
  return accessDenialOf(error) === null ? null : ExitCode.failure;
}

async function drainAndExit(worker: Promise<RunningWorker> | null, reason: DrainReason): Promise<void> {
  // One that could not start, or was stopped before it ran, ends without this.
  const running = await worker?.catch(() => null);
  if (running === null) return;
  if (running !== undefined) await shutDown(running.drain(reason), running.log);
  process.exit(WorkerExit.intended);
}

/**
 * Ends this process at once. `process.exit` can hang in the native teardown of the store during a commit, and only the
 * primary could end the process then. Every answered write is on disk.
 */
function killThisProcess(): void {
  process.kill(process.pid, 'SIGKILL');
}
