import type { ErrorCode } from '../model/errors.ts';

/**
 * A code of `CollabError`: one of the server (docs/errors.md), or one of the client:
 *
 * - `network`: the server could not be reached, or the connection was lost and the outcome is unknown
 * - `timeout`: no answer arrived in time
 * - `aborted`: the caller's `AbortSignal` aborted
 * - `closed`: the session has ended; its state says why
 * - `token_failed`: the token function of the page threw an error, returned no token, or did not answer within 30 s
 * - `protocol`: the response is not one of a Collab server, e.g. of a proxy in between; or a rightly signed webhook is
 *   not of one
 * - `invalid_signature`: a webhook was not signed with the secret, was changed, or is too old
 */
export type CollabErrorCode =
  | ErrorCode
  | 'network'
  | 'timeout'
  | 'aborted'
  | 'closed'
  | 'token_failed'
  | 'protocol'
  | 'invalid_signature';

/** Details of a `CollabError`. */
export interface CollabErrorDetails {
  /** HTTP status; 0 without an HTTP response. */
  readonly status?: number;
  /** Id under which the log of the server has the request. */
  readonly requestId?: string | null;
  /** Seconds after which a repetition can succeed. */
  readonly retryAfter?: number | null;
  readonly cause?: unknown;
}

/**
 * The error of every refused or failed operation. `message` names what is wrong and may be shown to people; decide by
 * `code`, which never changes.
 */
export class CollabError extends Error {
  override readonly name = 'CollabError';
  readonly code: CollabErrorCode;
  readonly status: number;
  readonly requestId: string | null;
  readonly retryAfter: number | null;

  constructor(
    code: CollabErrorCode,
    message: string,
    { status = 0, requestId = null, retryAfter = null, cause }: CollabErrorDetails = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }

  /** Holds for the errors of every entry of the SDK: each is bundled with a class `CollabError` of its own. */
  static override [Symbol.hasInstance](thrown: unknown): boolean {
    return (
      super[Symbol.hasInstance](thrown) ||
      (this === CollabError && thrown instanceof Error && thrown.name === 'CollabError')
    );
  }
}

/** The error as a `CollabError`: itself, or `network` for one that the platform threw. */
export function asCollabError(thrown: unknown, what: string): CollabError {
  if (thrown instanceof CollabError) return thrown;
  if (thrown instanceof Error && thrown.name === 'AbortError')
    return new CollabError('aborted', `${what} was cancelled.`, { cause: thrown });
  return new CollabError(
    'network',
    `${what} failed: the server cannot be reached. Check the connection and try again.`,
    { cause: thrown },
  );
}
