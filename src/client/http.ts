import { asCollabError, CollabError, type CollabErrorCode } from './errors.ts';

/** The parts of an HTTP response that say whether and how it failed. */
export interface ResponseHead {
  readonly status: number;
  readonly header: (name: string) => string | null;
}

/** The codes that stand for a status if the response does not name one, as those of proxies do not. */
const codes: Readonly<Record<number, CollabErrorCode>> = {
  400: 'invalid_request',
  401: 'invalid_token',
  403: 'forbidden',
  404: 'route_not_found',
  413: 'payload_too_large',
  429: 'rate_limited',
};

/** The error of a response other than 2xx, from its head and body. */
export function responseError({ status, header }: ResponseHead, body: string): CollabError {
  const named = header('X-Error-Code') as CollabErrorCode | null;
  const code = named ?? codes[status] ?? (status >= 500 ? 'internal' : 'protocol');
  const retryAfter = retryAfterOf(header('Retry-After'));
  return new CollabError(code, messageOf(body) ?? `The server answered ${status}.`, {
    status,
    requestId: header('X-Request-Id'),
    retryAfter,
  });
}

/**
 * Requests `what`. Resolves with a response of 2xx; rejects with a `CollabError` for any other, and if there is none.
 */
export async function fetchResponse(
  fetch: typeof globalThis.fetch,
  url: string,
  init: RequestInit,
  what: string,
): Promise<Response> {
  try {
    const response = await fetch(url, init);
    if (response.ok) return response;
    throw responseError(
      { status: response.status, header: (name) => response.headers.get(name) },
      await response.text(),
    );
  } catch (thrown) {
    throw asCollabError(thrown, what);
  }
}

/** The JSON of a response. Throws `protocol` for anything else. */
export function parseResponse(body: string, { status, header }: ResponseHead): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new CollabError(
      'protocol',
      `The server answered ${status} with something else than JSON. Check the address of the server and the proxies before it.`,
      { status, requestId: header('X-Request-Id') },
    );
  }
}

/** Seconds in a `Retry-After` header, which may also be a date; null if it is absent or neither. */
export function retryAfterOf(value: string | null): number | null {
  if (value === null || value === '') return null;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1_000);
}

function messageOf(body: string): string | null {
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    return typeof error === 'string' ? error : null;
  } catch {
    return null;
  }
}
