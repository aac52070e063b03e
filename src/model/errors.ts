/** What a kind of refusal means on each surface. */
export interface ErrorKind {
  /** HTTP status (docs/errors.md). */
  readonly status: 400 | 401 | 403 | 404 | 409 | 412 | 413 | 416 | 429 | 500 | 503;
  /** WebSocket close code, where this refusal ends the socket (docs/realtime.md, "Close codes"). */
  readonly close: 4400 | 4401 | 4403 | 4408 | 4429 | 4500;
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
 * The one catalogue of refusals. The key is the machine code that leaves as `X-Error-Code` and in
 * WebSocket errors; it never changes once released. docs/errors.md lists the same, held by a test.
 */
export const errorKinds = {
  invalid_request: kind(400, 4400, 'debug', 'A parameter is missing, of the wrong type or out of bounds; the message names it and the bound.'),
  invalid_json: kind(400, 4400, 'debug', 'The body or message is not valid JSON, is no object, or nests more than 64 levels deep.'),
  invalid_content_type: kind(400, 4400, 'debug', 'The body was not sent as application/json, or an upload not as multipart/form-data.'),
  invalid_cursor: kind(400, 4400, 'debug', 'The cursor is malformed, or was issued for other filters or another order.'),
  unknown_user: kind(400, 4400, 'debug', 'The author is not a known user of the environment.'),
  unsupported_media: kind(400, 4400, 'debug', 'The declared type of the file is none that is accepted, or its content contradicts it.'),
  unknown_attachment: kind(400, 4400, 'debug', 'No upload of the environment has this id, or it is another user’s.'),
  missing_credentials: kind(401, 4401, 'debug', 'No credential was sent.'),
  invalid_key: kind(401, 4401, 'info', 'The key is unknown, revoked, expired or of the wrong kind.'),
  invalid_token: kind(401, 4401, 'info', 'The user token is malformed, wrongly signed or not acceptable here.'),
  token_expired: kind(401, 4401, 'debug', 'The user token was valid and has expired.'),
  invalid_login: kind(401, 4401, 'info', 'The email address or the password of an admin is wrong.'),
  invalid_session: kind(401, 4401, 'info', 'The session of the admin is unknown, has ended or has expired: log in again.'),
  forbidden: kind(403, 4403, 'info', 'The credential is valid and does not allow this.'),
  origin_not_allowed: kind(403, 4403, 'info', 'The page’s origin is not in the allowedOrigins of the environment.'),
  environment_disabled: kind(403, 4403, 'info', 'The environment has been disabled by its operator.'),
  media_disabled: kind(403, 4403, 'debug', 'The environment accepts no files of this media type.'),
  route_not_found: kind(404, 4400, 'debug', 'No such path, or not with this method.'),
  room_not_found: kind(404, 4400, 'debug', 'The room does not exist.'),
  not_in_room: kind(404, 4400, 'debug', 'The socket has not joined the room, or the connection that it addresses has not.'),
  thread_not_found: kind(404, 4400, 'debug', 'The thread does not exist in this environment.'),
  comment_not_found: kind(404, 4400, 'debug', 'The comment does not exist in this environment.'),
  reaction_not_found: kind(404, 4400, 'debug', 'The reaction does not exist in this environment.'),
  user_not_found: kind(404, 4400, 'debug', 'The user does not exist in this environment.'),
  file_not_found: kind(404, 4400, 'debug', 'The file does not exist in this environment, or has no thumbnail.'),
  environment_not_found: kind(404, 4400, 'debug', 'No environment has this id or slug.'),
  key_not_found: kind(404, 4400, 'debug', 'No key has this id.'),
  admin_not_found: kind(404, 4400, 'debug', 'No admin has this email address.'),
  id_taken: kind(409, 4400, 'debug', 'The id that the client chose exists already.'),
  attachment_linked: kind(409, 4400, 'debug', 'The attachment is linked to another comment.'),
  slug_taken: kind(409, 4400, 'debug', 'Another environment has this slug.'),
  email_taken: kind(409, 4400, 'debug', 'Another admin has this email address.'),
  idempotency_key_reused: kind(409, 4400, 'info', 'The Idempotency-Key was used before with another body.'),
  write_conflict: kind(409, 4500, 'warn', 'The same records changed too often while this was written; nothing was written, try again.'),
  precondition_failed: kind(412, 4400, 'debug', 'If-Match or If-None-Match does not hold for what is stored; nothing was written.'),
  payload_too_large: kind(413, 4400, 'debug', 'The body is larger than the limit.'),
  quota_exceeded: kind(413, 4400, 'info', 'The environment, or the user, has stored as much as it may; the message names the quota and its bound.'),
  file_too_large: kind(413, 4400, 'debug', 'The file is larger than the environment accepts.'),
  state_too_complex: kind(413, 4400, 'info', 'Merging or comparing the Yjs document takes more time or memory than the server allows; nothing was written.'),
  range_not_satisfiable: kind(416, 4400, 'debug', 'The range asked for begins after the end of the file.'),
  rate_limited: kind(429, 4429, 'debug', 'Too many requests, messages or connections; Retry-After says when to come back.'),
  auth_timeout: kind(401, 4408, 'debug', 'The socket did not authenticate in time.'),
  storage_full: kind(500, 4500, 'error', 'The disk has less free space than the floor: writes are refused, reads go on.'),
  storage_failed: kind(500, 4500, 'error', 'The disk reports an I/O error: the change was not confirmed. Look at the disk of the server.'),
  internal: kind(500, 4500, 'error', 'Something failed inside the server; the log has it under the request id.'),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

/**
 * A refusal that may be shown to the caller: `message` names the field and the bound and holds no internals.
 * Anything else that is thrown is answered as `internal`.
 */
export class CollabError extends Error {
  override readonly name = 'CollabError';
  readonly code: ErrorCode;
  /** Seconds until a retry can succeed; only with `rate_limited`. */
  readonly retryAfter: number | undefined;

  constructor(code: ErrorCode, message: string, retryAfter?: number) {
    super(message);
    this.code = code;
    this.retryAfter = retryAfter;
  }

  get kind(): ErrorKind {
    return errorKinds[this.code];
  }
}

/** The data folder cannot be used as it is. The message is for the operator: what is wrong and what to do. */
export class DataError extends Error {
  override readonly name = 'DataError';
}

/** What a caller sees of anything thrown: a `CollabError` as it is, everything else as `internal`. */
export function publicError(thrown: unknown): CollabError {
  return thrown instanceof CollabError ? thrown : new CollabError('internal', 'Internal server error');
}
