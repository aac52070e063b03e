import { formatValue } from '../lib/format-value.ts';

/** The meaning of an error code over HTTP and WebSocket. */
export interface ErrorKind {
  /** HTTP status (docs/errors.md). */
  readonly status: 400 | 401 | 403 | 404 | 409 | 412 | 413 | 416 | 429 | 500 | 503;
  /** WebSocket close code if this error closes the socket (docs/realtime.md, "Close codes"). */
  readonly close: 4400 | 4401 | 4403 | 4408 | 4429 | 4500;
  /** Level at which it is logged. */
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  /** One sentence for docs/errors.md. */
  readonly meaning: string;
}

const kind = (
  status: ErrorKind['status'],
  close: ErrorKind['close'],
  level: ErrorKind['level'],
  meaning: string,
): ErrorKind => ({ status, close, level, meaning });

/**
 * The catalogue of all errors. The key is the machine-readable code in `X-Error-Code` and in WebSocket errors, and
 * never changes once released. docs/errors.md lists the same, which a test checks.
 */
export const errorKinds = {
  invalid_request: kind(
    400,
    4400,
    'debug',
    'A parameter is missing, of the wrong type or out of bounds; the message names it and the bound.',
  ),
  invalid_json: kind(
    400,
    4400,
    'debug',
    'The body or message is not valid JSON, is not an object, or nests more than 64 levels deep.',
  ),
  invalid_content_type: kind(
    400,
    4400,
    'debug',
    'The body was not sent as application/json, or an upload not as multipart/form-data.',
  ),
  invalid_cursor: kind(
    400,
    4400,
    'debug',
    'The cursor is malformed, or was issued for other filters or another order.',
  ),
  unknown_user: kind(400, 4400, 'debug', 'The author is not a known user of the environment.'),
  unsupported_media: kind(
    400,
    4400,
    'debug',
    'The declared type of the file is not accepted, or the content of the file contradicts it.',
  ),
  unknown_attachment: kind(
    400,
    4400,
    'debug',
    'No upload of the environment has this id, or it belongs to another user.',
  ),
  missing_credentials: kind(401, 4401, 'debug', 'No credential was sent.'),
  invalid_key: kind(401, 4401, 'info', 'The key is unknown, revoked, expired or of the wrong kind.'),
  invalid_token: kind(
    401,
    4401,
    'info',
    'The user token is malformed, or has an invalid signature or unacceptable claims.',
  ),
  token_expired: kind(401, 4401, 'debug', 'The user token has expired.'),
  invalid_login: kind(401, 4401, 'info', 'The email address or the password of an admin is wrong.'),
  invalid_session: kind(401, 4401, 'info', 'The admin session is unknown, was ended or has expired: log in again.'),
  forbidden: kind(403, 4403, 'info', 'The credential is valid but does not allow this.'),
  content_rejected: kind(
    403,
    4403,
    'debug',
    'A plugin of the operator, such as one for moderation, refuses the content or the connection; the message says why.',
  ),
  origin_not_allowed: kind(403, 4403, 'info', 'The page’s origin is not in the allowedOrigins of the environment.'),
  environment_disabled: kind(403, 4403, 'info', 'The environment has been disabled by its operator.'),
  media_disabled: kind(403, 4403, 'debug', 'The environment accepts no files of this media type.'),
  route_not_found: kind(404, 4400, 'debug', 'No such path, or the path does not support this method.'),
  room_not_found: kind(404, 4400, 'debug', 'The room does not exist.'),
  not_in_room: kind(
    404,
    4400,
    'debug',
    'The socket has not joined the room, or the connection that it addresses has not.',
  ),
  thread_not_found: kind(404, 4400, 'debug', 'The thread does not exist in this environment.'),
  comment_not_found: kind(404, 4400, 'debug', 'The comment does not exist in this environment.'),
  reaction_not_found: kind(404, 4400, 'debug', 'The reaction does not exist in this environment.'),
  user_not_found: kind(404, 4400, 'debug', 'The user does not exist in this environment.'),
  file_not_found: kind(404, 4400, 'debug', 'The file does not exist in this environment, or has no thumbnail.'),
  environment_not_found: kind(404, 4400, 'debug', 'No environment has this id or slug.'),
  key_not_found: kind(404, 4400, 'debug', 'No key has this id.'),
  admin_not_found: kind(404, 4400, 'debug', 'No admin has this email address.'),
  moderation_item_not_found: kind(404, 4400, 'debug', 'The moderation queue has no item with this id.'),
  already_decided: kind(409, 4400, 'debug', 'A moderator has decided on this item already, in the other way.'),
  id_taken: kind(409, 4400, 'debug', 'The id that the client chose already exists.'),
  attachment_linked: kind(409, 4400, 'debug', 'The attachment is linked to another comment.'),
  slug_taken: kind(409, 4400, 'debug', 'Another environment has this slug.'),
  email_taken: kind(409, 4400, 'debug', 'Another admin has this email address.'),
  idempotency_key_reused: kind(409, 4400, 'info', 'The Idempotency-Key was used before with a different body.'),
  write_conflict: kind(
    409,
    4500,
    'warn',
    'Other writes kept changing the same records; nothing was written, try again.',
  ),
  precondition_failed: kind(
    412,
    4400,
    'debug',
    'The precondition of If-Match or If-None-Match failed; nothing was written.',
  ),
  payload_too_large: kind(413, 4400, 'debug', 'The body, or the change that it asks for, is larger than the limit.'),
  quota_exceeded: kind(
    413,
    4400,
    'info',
    'The environment or the user has used up a quota; the message names the quota and its bound.',
  ),
  file_too_large: kind(413, 4400, 'debug', 'The file is larger than the environment accepts.'),
  state_too_complex: kind(
    413,
    4400,
    'info',
    'Merging or comparing the Yjs document takes more time or memory than the server allows; nothing was written.',
  ),
  range_not_satisfiable: kind(416, 4400, 'debug', 'The requested range begins after the end of the file.'),
  rate_limited: kind(429, 4429, 'debug', 'Too many requests, messages or connections; Retry-After says when to retry.'),
  auth_timeout: kind(401, 4408, 'debug', 'The socket did not authenticate in time.'),
  storage_full: kind(
    500,
    4500,
    'error',
    'The disk or the quota on it is full, or has less free space than the configured minimum: writes are refused, reads continue.',
  ),
  storage_failed: kind(
    500,
    4500,
    'error',
    'The disk refused a write, or failed (such as EIO, EROFS): the change was not confirmed. Check the disk of the server.',
  ),
  storage_unavailable: kind(
    503,
    4500,
    'warn',
    'The database, the shared memory or the object store of the nodes cannot be reached at the moment: the message says whether a change was stored. Try again.',
  ),
  store_moving: kind(
    503,
    4500,
    'warn',
    'The data of the server is being moved to another store: nothing was written, try again in a moment. Reads continue.',
  ),
  internal: kind(500, 4500, 'error', 'Something failed inside the server; the log has the cause under the request id.'),
} as const satisfies Record<string, ErrorKind>;

/** A machine-readable error code. */
export type ErrorCode = keyof typeof errorKinds;

/** A field or parameter that is refused. */
export interface FieldError {
  /** As in messages: `position.x`, `mentions[1]`. */
  readonly path: string;
  readonly message: string;
}

/**
 * An error that may be shown to the client: `message` names the field and the bound and contains no internals. The
 * client sees any other error as `internal`.
 */
export class CollabError extends Error {
  override readonly name = 'CollabError';
  readonly code: ErrorCode;
  /** Seconds until a retry can succeed; only for `rate_limited`. */
  readonly retryAfter: number | undefined;
  /** The refused fields, as far as they are known; the first one is that of the message. */
  readonly fields: readonly FieldError[];

  constructor(code: ErrorCode, message: string, retryAfter?: number, fields: readonly FieldError[] = []) {
    super(message);
    this.code = code;
    this.retryAfter = retryAfter;
    this.fields = fields;
  }

  get kind(): ErrorKind {
    return errorKinds[this.code];
  }
}

const storeErrorCodes: ReadonlySet<unknown> = new Set<ErrorCode>([
  'storage_full',
  'storage_failed',
  'storage_unavailable',
  'store_moving',
  'write_conflict',
]);

/**
 * Whether the store refused what it may accept later: its disk is full or failing, it cannot be reached or is being
 * moved, or other writes kept conflicting. Also for an error that another thread sent.
 */
export function isStoreError(error: unknown): boolean {
  return error instanceof Error && error.name === 'CollabError' && 'code' in error && storeErrorCodes.has(error.code);
}

/**
 * The refusal (`invalid_request`) of a field or parameter: `<path> <constraint>, not <sent>`.
 *
 * @param sent what was sent, or its length or count if that is what is wrong; left out if it is missing or must not be
 *   shown
 */
export function invalidField(path: string, constraint: string, ...sent: readonly [sent?: unknown]): CollabError {
  const message = `${path} ${constraint}${sent.length === 0 ? '' : `, not ${formatValue(sent[0])}`}`;
  return new CollabError('invalid_request', message, undefined, [{ path, message }]);
}

/** The data folder is unusable in its current state. The message tells the operator what is wrong and what to do. */
export class DataError extends Error {
  override readonly name = 'DataError';
  /** What to do, if the data is not damaged. */
  readonly remedy: string | null;
  constructor(message: string, remedy: string | null = null) {
    super(message);
    this.remedy = remedy;
  }
}

/** The error that a client sees: a `CollabError` unchanged, anything else as `internal`. */
export function publicError(thrown: unknown): CollabError {
  return thrown instanceof CollabError ? thrown : new CollabError('internal', 'Internal server error');
}
