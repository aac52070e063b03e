/** How long an interrupted command may take to end after its store is closed. */
const EXIT_MS = 1_000;

/** The signals that interrupt a command, with their numbers. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/** A signal has interrupted a command. Nothing is printed; the shell gets the exit code. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
  /** 128 plus the number of the signal, as usual in shells: 130 for SIGINT, 143 for SIGTERM. */
  readonly exitCode: number;

  constructor(signal: keyof typeof SIGNALS) {
    super(`interrupted by ${signal}`);
    this.exitCode = 128 + SIGNALS[signal];
  }
}

/** A watch for signals. */
export interface InterruptionWatch {
  /** The interruption, if there was a signal; otherwise null. */
  interrupted(): InterruptedError | null;
  /** Stops watching. */
  done(): void;
}

/**
 * Calls `close` on SIGINT or SIGTERM, which makes the command fail at its next read of the store. If the command has
 * not ended a second later, for example because it waits for a pipe, the process exits. A second signal ends it
 * at once.
 *
 * @param closeMs if `close` takes longer, in milliseconds, because another process blocks the store, the signal ends
 *   the process
 */
export function watchForInterruption(close: () => Promise<void>, closeMs?: number): InterruptionWatch {
  let interrupted: InterruptedError | null = null;
  let giveUp: NodeJS.Timeout | undefined;
  const onSignal = (signal: keyof typeof SIGNALS): void => {
    const { exitCode } = (interrupted ??= new InterruptedError(signal));
    const exit = (): void => process.exit(exitCode);
    process.once(signal, () => endBy(signal));
    if (closeMs !== undefined) giveUp = setTimeout(() => endBy(signal), closeMs);
    void close().then(() => setTimeout(exit, EXIT_MS).unref(), exit);
  };
  const signals = Object.keys(SIGNALS) as (keyof typeof SIGNALS)[];
  for (const signal of signals) process.once(signal, onSignal);
  return {
    interrupted: () => interrupted,
    done: () => {
      clearTimeout(giveUp);
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}

/** Ends the process as if it did not handle the signal. `process.exit` would wait for a commit that is under way. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/**
 * Runs `work` with a signal that is aborted on SIGINT or SIGTERM. Then waits until `work` has ended, however long that
 * takes, so that it can remove what it has written. A second SIGINT or SIGTERM ends the process at once.
 *
 * @throws {InterruptedError} if `work` fails after a SIGINT or SIGTERM
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const aborter = new AbortController();
  const running = work(aborter.signal);
  const watch = watchForInterruption(async () => {
    aborter.abort();
    await running.catch(() => undefined);
  });
  try {
    return await running;
  } catch (error) {
    throw watch.interrupted() ?? error;
  } finally {
    watch.done();
  }
}
