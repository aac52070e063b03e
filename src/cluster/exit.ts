/** How the server ends, as the shell sees it (docs/cli.md). */
export const ExitCode = {
  intended: 0,
  failure: 1,
  badConfiguration: 2,
} as const;

/**
 * How a worker ends, as the primary sees it. Not 0 and 1: an event loop that ran empty and a crash of Node itself end
 * with these, and neither is intended or logged.
 */
export const WorkerExit = {
  /** It was told to, and everything is closed. */
  intended: 80,
  /** It failed and has said why in the log. */
  logged: 81,
} as const;

/** The server cannot start. The message is for the operator: what is wrong and what to do. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = ExitCode.failure) {
    super(message);
    this.exitCode = exitCode;
  }
}
