import { STATUS_CODES } from 'node:http';
import type { CollabError } from '../model/errors.ts';

/** A header field of a response. Both texts must be ASCII: some builds of the core send other characters as Latin-1. */
export type Header = readonly [name: string, value: string];

/**
 * Content type and caching of JSON that must not be stored. One value holds several lines: each `writeHeader` is a call
 * into C++ that costs as much as reading the request line. Such values are constant and never contain text from a request.
 */
export const uncachedJson: Header = ['Content-Type', 'application/json; charset=utf-8\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff'];

const statusLines = new Map<number, string>();

/** A status code with its reason phrase, as `writeStatus` of the core takes it. */
export function statusLine(status: number): string {
  let line = statusLines.get(status);
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? ''}`;
    statusLines.set(status, line);
  }
  return line;
}

/** The headers of a refusal: `X-Error-Code`, and `Retry-After` if the client should wait. */
export function refusalHeaders({ code, retryAfter }: CollabError): Header[] {
  const headers: Header[] = [['X-Error-Code', code]];
  if (retryAfter !== undefined) headers.push(['Retry-After', String(retryAfter)]);
  return headers;
}

/** The body of a refusal, as JSON text. */
export function refusalBody({ message }: CollabError): string {
  return JSON.stringify({ error: message });
}
