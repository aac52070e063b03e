import { Agent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../../lib/clock.ts';
import type { CredentialSource } from '../credentials/source.ts';
import type { S3Location } from '../location.ts';
import { type Body, exchange, type ExchangeTimeouts } from './exchange.ts';
import type { HttpAnswer } from './http-answer.ts';
import { ConnectionFailure, isTlsFailure, S3Failure } from './failures.ts';
import { EMPTY_SHA256, encodePath, encodeQuery, signedHeaders } from './signature.ts';

/** A body with its SHA-256, hex, which the store compares. */
export interface HashedBody extends Body {
  readonly sha256: string;
}

/** A request to a bucket. It must have the same effect when it is sent again. */
export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** Of the object, without the prefix of the location; absent for the bucket. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: HashedBody;
  /** The largest body of an answer, in bytes; 4 MiB if absent. */
  readonly maxBytes?: number;
  /** Looks at a successful answer. A failure that it throws is treated as one of the exchange. */
  readonly check?: (answer: HttpAnswer) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Bounds of the client. Times are milliseconds. */
export interface ClientBounds extends ExchangeTimeouts {
  readonly maxConnections: number;
  /** No request is sent again later than this after its first attempt began. */
  readonly retryMs: number;
  readonly maxAttempts: number;
  /** The first pause is random and at most this long; the longest doubles with each attempt. */
  readonly backoffMs: number;
}

/** An object store that hangs is given up after 20 s, and a request ends 10 s later at the latest. */
export const DEFAULT_BOUNDS: ClientBounds = {
  maxConnections: 32,
  queueMs: 10_000,
  connectMs: 4_000,
  idleMs: 10_000,
  totalMs: 120_000,
  retryMs: 15_000,
  maxAttempts: 5,
  backoffMs: 100,
};

const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const MAX_BACKOFF_MS = 5_000;
/** Less than the 5 s after which some servers close idle connections. */
const KEPT_MS = 4_000;

/** What the client needs besides a location. */
export interface ClientDeps {
  readonly credentials: CredentialSource;
  readonly clock: Clock;
  readonly bounds: ClientBounds;
}

/** Sends signed requests to a bucket, on a bounded number of connections. */
export class S3Client {
  readonly location: S3Location;
  readonly #deps: ClientDeps;
  readonly #agent: Agent;

  constructor(location: S3Location, deps: ClientDeps) {
    this.location = location;
    this.#deps = deps;
    const options = { keepAlive: true, timeout: KEPT_MS, maxSockets: deps.bounds.maxConnections };
    this.#agent = location.endpoint.secure ? new HttpsAgent(options) : new Agent(options);
  }

  /** Closes all connections. Requests that are under way reject. */
  close(): void {
    this.#agent.destroy();
  }

  /**
   * Sends a request, again after a failure that may be over soon, with growing random pauses. Resolves with a successful
   * answer (2xx). Rejects with the last failure: an `S3Failure`, a `ConnectionFailure` or a `CredentialFailure`.
   */
  async send(request: S3Request): Promise<HttpAnswer> {
    const { clock, bounds } = this.#deps;
    const start = clock.monotonic();
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#sendOnce(request);
      } catch (error) {
        const elapsed = clock.monotonic() - start;
        const pause = this.#pauseAfter(error, attempt);
        if (pause === null || attempt >= bounds.maxAttempts || elapsed + pause > bounds.retryMs) throw error;
        if (pause > 0) await sleep(pause, undefined, request.signal === undefined ? {} : { signal: request.signal });
      }
    }
  }

  /** Milliseconds until the next attempt; null if there is none. */
  #pauseAfter(error: unknown, attempt: number): number | null {
    const { credentials, bounds } = this.#deps;
    const longest = Math.min(MAX_BACKOFF_MS, bounds.backoffMs * 2 ** (attempt - 1));
    const random = longest * (0.5 + Math.random() / 2);
    if (error instanceof ConnectionFailure) return isTlsFailure(error.code) ? null : error.wasIdle ? 0 : random;
    if (!(error instanceof S3Failure)) return null;
    if (error.hasStaleKeys) return credentials.expire() ? 0 : null;
    return error.isTransient ? Math.max(random, Math.min(error.retryAfterMs, MAX_BACKOFF_MS)) : null;
  }

  async #sendOnce(request: S3Request): Promise<HttpAnswer> {
    const { location } = this;
    const { clock, bounds, credentials } = this.#deps;
    const { method, key, query = {}, body, maxBytes = MAX_ANSWER_BYTES, signal } = request;
    const keys = await credentials.keys();
    const path = location.basePath + (key === undefined ? '' : encodePath(location.prefix + key));
    const bodySha256 = body?.sha256 ?? EMPTY_SHA256;
    const headers = signedHeaders(
      { method, path, query, headers: { host: location.host, ...request.headers }, bodySha256 },
      keys,
      location.region,
      clock.now(),
    );
    const text = encodeQuery(query);
    const answer = await exchange({
      endpoint: location.endpoint,
      agent: this.#agent,
      method,
      path: text === '' ? path : `${path}?${text}`,
      headers,
      body,
      maxBytes,
      timeouts: bounds,
      signal,
    });
    if (answer.status < 200 || answer.status > 299)
      throw new S3Failure(answer, `${method} ${key ?? `bucket ${location.bucket}`}`);
    request.check?.(answer);
    return answer;
  }
}
