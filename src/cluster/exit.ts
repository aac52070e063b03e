/** The exit codes of `collab start`, and of commands that no signal has ended (docs/cli.md). */
export const ExitCode = {
  intended: 0,
  failure: 1,
  badConfiguration: 2,
} as const;

/**
 * The exit codes of a worker, for the primary. Not 0 or 1, because Node itself exits with these when the event loop
 * runs empty or an error is uncaught, which is neither intended nor logged.
 */
export const WorkerExit = {
  /** It was asked to drain and has closed everything. */
  intended: 80,
  /** It failed and has logged the reason. */
  logged: 81,
} as const;

/** The server cannot start. The message tells the operator what is wrong and what to do. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = ExitCode.failure) {
    super(message);
    this.exitCode = exitCode;
  }
}
