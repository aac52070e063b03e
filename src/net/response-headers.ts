import { STATUS_CODES } from 'node:http';
import type { CollabError } from '../model/errors.ts';

/** A header field of a response. Both texts must be ASCII: some builds of the core send other characters as Latin-1. */
export type Header = readonly [name: string, value: string];

/**
 * Content type and caching of JSON that must not be stored. One value holds several lines: each `writeHeader` is a call
 * into C++ that costs as much as reading the request line. Such values are constant and never contain text from a
 * request.
 */
export const uncachedJson: Header = [
  'Content-Type',
  'application/json; charset=utf-8\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff',
];

/**
 * Seconds that a connection without a request stays open at least: the native core closes it after 8 to 12 s, the other
 * one after 9 to 10.5 s.
 */
const KEEP_ALIVE_SECONDS = 8;

const statusLines = new Map<number, string>();
const keptStatusLines = new Map<number, string>();

/**
 * A status code with its reason phrase, as `writeStatus` of the core takes it. With `keepsAlive`, a second line says
 * how long the connection stays open: a constant that costs no call into the core.
 */
export function statusLine(status: number, keepsAlive = false): string {
  const lines = keepsAlive ? keptStatusLines : statusLines;
  let line = lines.get(status);
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? ''}${keepsAlive ? `\r\nKeep-Alive: timeout=${KEEP_ALIVE_SECONDS}` : ''}`;
    lines.set(status, line);
  }
  return line;
}

/** The headers of a refusal: `X-Error-Code`, and `Retry-After` if the client should wait. */
export function refusalHeaders({ code, retryAfter }: CollabError): Header[] {
  const headers: Header[] = [['X-Error-Code', code]];
  if (retryAfter !== undefined) headers.push(['Retry-After', String(retryAfter)]);
  return headers;
}

/**
 * The body of a refusal as problem details (RFC 9457), as JSON text: with the fields that are refused, as far as they
 * are known, and with the members of `refusalBody`.
 */
export function problemBody({ code, kind: { status }, message, fields }: CollabError, requestId: string): string {
  const errors = fields.length === 0 ? {} : { errors: fields };
  return JSON.stringify({
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    detail: message,
    instance: `#${requestId}`,
    code,
    ...errors,
    error: message,
  });
}

/** The body of a refusal, as JSON text. */
export function refusalBody({ message }: CollabError): string {
  return JSON.stringify({ error: message });
}
