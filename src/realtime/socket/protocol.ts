import { parseJson } from '../../domain/input/json.ts';
import { CollabError, type ErrorCode } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import type { SocketWriter } from './socket-writer.ts';

/** Largest frame taken from a client, in bytes. */
export const MAX_MESSAGE_BYTES = 65_536;

/** A client's message: one JSON object a text frame. */
export interface Envelope {
  readonly type: string;
  /** Given where the client wants a reply. */
  readonly id: number | null;
  readonly data: unknown;
}

/** The JSON object in a frame. Throws `invalid_json` for anything else, and for one nested too deeply: such a frame ends the socket. */
export function parseFrame(frame: ArrayBuffer, isBinary: boolean): Record<string, unknown> {
  if (isBinary) throw new CollabError('invalid_json', 'Binary frames are not supported: send JSON in text frames');
  const value = parseJson(Buffer.from(frame).toString(), 'A message');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CollabError('invalid_json', 'A message must be a JSON object');
  }
  return value as Record<string, unknown>;
}

/** The id that a reply to this message carries; null when there is none that could be used. */
export function replyId(message: Record<string, unknown>): number | null {
  return Number.isSafeInteger(message['id']) && (message['id'] as number) > 0 ? (message['id'] as number) : null;
}

/** The parts of a message. Throws `invalid_request` naming the part that is wrong. */
export function readEnvelope(message: Record<string, unknown>): Envelope {
  const { type, id, data } = message;
  if (typeof type !== 'string') throw new CollabError('invalid_request', 'type must be a string');
  if (id !== undefined && replyId(message) === null) throw new CollabError('invalid_request', 'id must be a positive integer');
  return { type, id: replyId(message), data };
}

/** `data` is JSON text. */
export function okFrame(id: number, data: string): string {
  return `{"type":"ok","id":${id},"data":${data}}`;
}

export function errorFrame(id: number | null, error: CollabError): string {
  const body = JSON.stringify({ code: error.code, message: error.message });
  return id === null ? `{"type":"error","error":${body}}` : `{"type":"error","id":${id},"error":${body}}`;
}

/** What the first frame says (docs/realtime.md, "Connecting"). */
export interface Welcome {
  readonly connectionId: string;
  readonly userId: string;
  readonly environmentId: string;
  readonly epoch: string;
  /** Position of the log at this moment: with `recovered` everything missed up to it follows, without it what comes after. */
  readonly seq: number;
  readonly recovered: boolean;
  readonly heartbeatMs: number;
  readonly maxMessageBytes: number;
  readonly tokenExpiresAt: string;
  readonly serverTime: string;
}

export function welcomeFrame(welcome: Welcome): string {
  return JSON.stringify({ type: 'welcome', data: welcome });
}

/** Tells a client that doesn't get every event where the log stands. */
export function seqFrame(seq: number): string {
  return `{"type":"seq","seq":${seq}}`;
}

export function tokenExpiringFrame(expiresAt: number): string {
  return `{"type":"token.expiring","data":{"tokenExpiresAt":"${timestamp(expiresAt)}"}}`;
}

export const PING_FRAME = '{"type":"ping"}';

/** A refusal after which the socket is closed, with the close code of its kind. */
export class FinalRefusal extends CollabError {}

/** Reasons that the table of close codes knows; the reason of any other code is its group's. */
const reasons = new Set<ErrorCode>([
  'missing_credentials',
  'invalid_token',
  'token_expired',
  'forbidden',
  'origin_not_allowed',
  'environment_disabled',
  'auth_timeout',
  'rate_limited',
  'internal',
]);
const groupReasons: Readonly<Record<number, string>> = { 4400: 'bad_message', 4401: 'invalid_token', 4403: 'forbidden', 4500: 'internal' };

/** Ends a socket over an error: a frame that says what is wrong, then the close code with its reason. */
export function refuse(writer: SocketWriter, error: CollabError, options: { id?: number | null; reason?: string } = {}): void {
  writer.send(errorFrame(options.id ?? null, error));
  const reason = options.reason ?? (reasons.has(error.code) ? error.code : groupReasons[error.kind.close]);
  writer.close(error.kind.close, reason ?? error.code);
}
