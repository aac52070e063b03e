/** The options that name an engine outside of the server. */
export type EngineOption = 'store.url' | 'shared.url' | 'blobs.url';

/**
 * An engine (PostgreSQL, Redis, an S3 store) that cannot be used as it is configured, or not now. The message is one
 * line for the operator: what was tried, with host, port and database, and what to do. It never has a password.
 */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly option: EngineOption;
  /**
   * Whether the engine may answer later without a change of the configuration or of its rights, such as one that starts.
   * Otherwise the server exits with code 2.
   */
  readonly retry: boolean;

  constructor(option: EngineOption, message: string, { retry, cause }: { retry: boolean; cause?: unknown }) {
    super(`${option}: ${message}`, cause === undefined ? undefined : { cause });
    this.option = option;
    this.retry = retry;
  }
}
