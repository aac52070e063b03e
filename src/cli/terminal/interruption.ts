/** How long the work of an interrupted command may take to end once its store is closed. */
const LAST_MS = 1_000;

/** The signals that end a command, and their numbers. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/** A signal has ended a command before its work was done: nothing is printed, the shell sees the exit code. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  /** 128 and the number of the signal, as shells count: 130 for SIGINT, 143 for SIGTERM. */
  readonly exitCode: number;

  constructor(signal: keyof typeof SIGNALS) {
    super(`interrupted by ${signal}`);
    this.exitCode = 128 + SIGNALS[signal];
  }
}

/** Watches for signals until `done`. */
export interface InterruptionWatch {
  /** The signal that came; null when none did. */
  interrupted(): Interrupted | null;
  done(): void;
}

/**
 * Calls `close` at SIGINT or SIGTERM, which makes the work of a command fail at its next read of the store. Work that goes
 * on all the same, such as waiting for a pipe, is ended after a second; a second signal ends it at once.
 */
export function watchForInterruption(close: () => Promise<void>): InterruptionWatch {
  let interrupted: Interrupted | null = null;
  const onSignal = (signal: keyof typeof SIGNALS): void => {
    const { exitCode } = (interrupted ??= new Interrupted(signal));
    const exit = (): void => process.exit(exitCode);
    process.once(signal, exit);
    void close().then(() => setTimeout(exit, LAST_MS).unref(), exit);
  };
  const signals = Object.keys(SIGNALS) as (keyof typeof SIGNALS)[];
  for (const signal of signals) process.once(signal, onSignal);
  return {
    interrupted: () => interrupted,
    done: () => {
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}
