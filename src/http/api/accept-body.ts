import { hash } from 'node:crypto';
import { type Idempotency, parseIdempotencyKey } from '../../domain/idempotency.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import { CollabError } from '../../model/errors.ts';
import { defaultLimits, MAX_JSON_BODY_BYTES } from '../../model/environments/limits.ts';
import type { Exchange } from '../core/exchange.ts';
import type { NoBody } from '../core/body-collector.ts';
import type { ApiRequest } from './api-request.ts';
import { parseJsonBody } from './json-body.ts';
import type { Route } from './route.ts';

/**
 * Starts to read the body of a request as its route needs it. Until `admitBody`, only a little of it is taken.
 *
 * @returns the body as a whole; null for a request without one, and for an upload, whose handler reads the stream
 */
export function startBody(
  exchange: Exchange,
  { body, payload, upload, maxTextBytes }: Route,
): Promise<Buffer | NoBody> | null {
  if (upload === true) exchange.streamBody();
  if (maxTextBytes !== undefined) return exchange.receiveBody(maxTextBytes);
  if (payload !== undefined) return exchange.receiveBody(null);
  // A chunked body is read to its end even where none is wanted, so that the core refuses a trailer after it before
  // anything is written.
  return body !== undefined || (exchange.head.chunked && upload !== true)
    ? exchange.receiveBody(MAX_JSON_BODY_BYTES)
    : null;
}

/** Lets the body of an authorized request in. */
export function admitBody(request: ApiRequest, { payload }: Route): void {
  request.exchange.admitBody(payload?.limit(request.actor, request.head.contentType));
}

/**
 * Checks the size of a body, parses it as its route needs it and sets it on the request, with its idempotency key.
 * Throws `payload_too_large`, `invalid_request` for a malformed idempotency key, and as `parseJsonBody`.
 */
export function acceptBody(request: ApiRequest, route: Route, bytes: Buffer | 'too_large'): void {
  const { caller, exchange } = request;
  const limit =
    route.maxTextBytes ?? (caller === null ? defaultLimits.jsonBodyBytes : limitsOf(caller.environment).jsonBodyBytes);
  if (bytes === 'too_large' || (route.payload === undefined && bytes.length > limit)) {
    throw route.payload?.tooLarge(request.actor) ?? bodyTooLarge(limit, exchange.head.contentLength);
  }
  if (route.body !== undefined) request.body = parseJsonBody(exchange.head.contentType, bytes);
  else if (route.payload !== undefined || route.maxTextBytes !== undefined) request.bytes = bytes;
  request.idempotency = idempotencyOf(route, exchange, bytes);
}

/** @param length as declared; null for a chunked body, of which the rest is not read */
function bodyTooLarge(limit: number, length: number | null): CollabError {
  return new CollabError(
    'payload_too_large',
    `The body must be at most ${limit} bytes${length === null ? '' : `, not ${length}`}`,
  );
}

/** Sets the idempotency key of a request whose route takes no body. Throws `invalid_request` for a malformed one. */
export function acceptNoBody(request: ApiRequest, route: Route): void {
  request.idempotency = idempotencyOf(route, request.exchange, NO_BYTES);
}

const NO_BYTES = Buffer.alloc(0);

function idempotencyOf(route: Route, exchange: Exchange, body: Buffer): Idempotency {
  const { idempotencyKey, method, path } = exchange.head;
  if (route.idempotent !== true || idempotencyKey === null) return null;
  return { key: parseIdempotencyKey(idempotencyKey), method, path, bodyHash: hash('sha256', body, 'hex') };
}
