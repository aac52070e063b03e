import { parseJson } from '../../domain/input/json.ts';
import { CollabError, type ErrorCode, invalidField } from '../../model/errors.ts';
import type { FrameError, Welcome } from '../../model/frames.ts';
import { timestamp } from '../../lib/clock.ts';
import type { SocketWriter } from './socket-writer.ts';

/** Largest frame accepted from a client, in bytes. */
export const MAX_MESSAGE_BYTES = 65_536;

/** A message of a client: one JSON object per text frame. */
export interface Envelope {
  readonly type: string;
  /** Present if the client wants a reply. */
  readonly id: number | null;
  readonly data: unknown;
}

/**
 * Returns the JSON object in a frame. Throws `invalid_json` for anything else and for too deep nesting; such a frame
 * closes the socket.
 */
export function parseFrame(frame: ArrayBuffer, isBinary: boolean): Record<string, unknown> {
  if (isBinary) throw new CollabError('invalid_json', 'Binary frames are not supported: send JSON in text frames');
  const value = parseJson(Buffer.from(frame).toString(), 'A message');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CollabError('invalid_json', 'A message must be a JSON object');
  }
  return value as Record<string, unknown>;
}

/** The id for the reply to a message; null if the message has no valid id. */
export function replyId(message: Record<string, unknown>): number | null {
  return Number.isSafeInteger(message['id']) && (message['id'] as number) > 0 ? (message['id'] as number) : null;
}

/** Returns the parts of a message. Throws `invalid_request` naming the invalid part. */
export function readEnvelope(message: Record<string, unknown>): Envelope {
  const { type, id, data } = message;
  if (typeof type !== 'string') throw invalidField('type', 'must be a string', type);
  if (id !== undefined && replyId(message) === null) throw invalidField('id', 'must be a positive integer', id);
  return { type, id: replyId(message), data };
}

/** The reply to a message that succeeded. `data` is JSON text. */
export function okFrame(id: number, data: string): string {
  return `{"type":"ok","id":${id},"data":${data}}`;
}

/** The reply to the message `id`, which failed; null for an error that replies to no message. */
export function errorFrame(id: number | null, { code, message, retryAfter }: CollabError): string {
  const error: FrameError = { code, message, ...(retryAfter === undefined ? {} : { retryAfter }) };
  const body = JSON.stringify(error);
  return id === null ? `{"type":"error","error":${body}}` : `{"type":"error","id":${id},"error":${body}}`;
}

/** Renders the welcome. */
export function welcomeFrame(welcome: Welcome): string {
  return JSON.stringify({ type: 'welcome', data: welcome });
}

/** Tells a client that does not receive every event the current position of the stream. */
export function seqFrame(seq: number): string {
  return `{"type":"seq","seq":${seq}}`;
}

/** @param expiresAt expiry of the token, in milliseconds since the epoch */
export function tokenExpiringFrame(expiresAt: number): string {
  return `{"type":"token.expiring","data":{"tokenExpiresAt":"${timestamp(expiresAt)}"}}`;
}

/** Sent after a time of silence; the client answers with `pong`. */
export const PING_FRAME = '{"type":"ping"}';

/** An error after which the socket is closed, with the close code of its kind. */
export class FatalSocketError extends CollabError {}

/** Error codes that are close reasons in docs/realtime.md. The reason for any other error is that of its close code. */
const closeReasons = new Set<ErrorCode>([
  'missing_credentials',
  'invalid_token',
  'token_expired',
  'forbidden',
  'origin_not_allowed',
  'content_rejected',
  'environment_disabled',
  'auth_timeout',
  'rate_limited',
  'internal',
]);
const defaultReasons: Readonly<Record<number, string>> = {
  4400: 'bad_message',
  4401: 'invalid_token',
  4403: 'forbidden',
  4500: 'internal',
};

/** Closes a socket because of an error: an error frame, then the close code of the error with a reason. */
export function refuse(
  writer: SocketWriter,
  error: CollabError,
  options: { id?: number | null; reason?: string } = {},
): void {
  writer.send(errorFrame(options.id ?? null, error));
  const reason = options.reason ?? (closeReasons.has(error.code) ? error.code : defaultReasons[error.kind.close]);
  writer.close(error.kind.close, reason ?? error.code);
}
