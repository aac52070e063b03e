import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { refusalBody, refusalHeaders, uncachedJson } from '../response-headers.ts';
import { CollabError } from '../../model/errors.ts';

/** Why a request is refused before it reaches a handler. */
export interface HeadError {
  readonly status: number;
  readonly message: string;
}

/** The most header lines of a request; the native core for Node 20 takes as many. */
export const MAX_HEADER_LINES = 97;

const tooLarge: HeadError = { status: 431, message: 'The head of the request must have at most 16384 bytes' };

/** Why the head of a request is refused, or null if it is not. */
export function checkHead({ httpVersion, url, rawHeaders, headers }: IncomingMessage): HeadError | null {
  if (httpVersion !== '1.1') return { status: 505, message: 'Only HTTP/1.1 is supported' };
  if (url?.startsWith('/') !== true)
    return { status: 400, message: 'The request target must be a path that begins with a slash' };
  if (rawHeaders.length > MAX_HEADER_LINES * 2)
    return { status: 431, message: `A request must have at most ${MAX_HEADER_LINES} header lines` };
  if (headers.host === undefined) return { status: 400, message: 'The header Host is missing' };
  return null;
}

/**
 * The error of a request that the parser could not read; null if nothing was parsed, so that nobody waits for a
 * response.
 */
export function parserErrorOf(code: string | undefined): HeadError | null {
  if (code === 'HPE_HEADER_OVERFLOW') return tooLarge;
  if (code === 'HPE_INVALID_VERSION') return { status: 505, message: 'Only HTTP/1.1 is supported' };
  if (code?.startsWith('HPE_') === true && code !== 'HPE_INVALID_EOF_STATE')
    return { status: 400, message: 'The request is not valid HTTP/1.1' };
  return null;
}

/** The error of a head that does not arrive in time. */
export const slowHead: HeadError = { status: 408, message: 'The head of the request did not arrive within 10 s' };

/** Writes an error to a connection that no response uses, and ends it. */
export function sendHeadError(socket: Socket, { status, message }: HeadError): void {
  const error = new CollabError('invalid_request', message);
  const body = refusalBody(error);
  const codes = status === 400 ? refusalHeaders(error) : [];
  const headers = [
    uncachedJson,
    ...codes,
    ['Content-Length', String(Buffer.byteLength(body))],
    ['Connection', 'close'],
  ];
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${head}\r\n${body}`);
}
