import { asCollabError, CollabError } from '../errors.ts';
import { responseError, type ResponseHead, parseResponse } from '../http.ts';

/** Options of one call. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Names the write, so that a repetition is not executed twice; a random one if absent. */
  readonly idempotencyKey?: string | undefined;
}

/** The options of a client for backends. */
export interface ClientOptions {
  /** Address of the server, such as `https://comments.example.com`; a path before `/api/v1` is kept. */
  readonly serverUrl: string;
  /** The key that begins with `sk_`. It must never reach a browser. */
  readonly secretKey: string;
  /** How often a call is repeated after 429, 5xx, `write_conflict`, a timeout or a network failure. Default: 4. */
  readonly maxRetries?: number | undefined;
  /** How long one attempt may take, in milliseconds. Default: 30 000. */
  readonly timeoutMs?: number | undefined;
  /**
   * The delay before the first repetition, which doubles up to 20 s, in milliseconds; half of it is random. Default:
   * 500.
   */
  readonly retryDelayMs?: number | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

/** Parameters of a query. Those that are undefined are left out, arrays are repeated. */
export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** One request to the API. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`, percent-encoded. */
  readonly path: string;
  readonly query?: Query | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly form?: FormData | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly options?: CallOptions | undefined;
}

const MAX_DELAY_MS = 20_000;
/** The longest that `Retry-After` is waited for; a longer one is left to the caller. */
const MAX_RETRY_AFTER_S = 60;

/** Sends requests with a secret key, and repeats those that can be repeated safely. */
export class Transport {
  readonly #options: ClientOptions;
  readonly #base: string;

  constructor(options: ClientOptions) {
    if (!/^https?:\/\/[^/]/.test(options.serverUrl))
      throw new CollabError('invalid_request', 'serverUrl must begin with https:// or http://');
    // Not `startsWith`: an environment variable that is not set is undefined.
    if (!/^sk_\w/.test(options.secretKey))
      throw new CollabError('invalid_request', 'secretKey must be a key that begins with sk_');
    this.#options = options;
    this.#base = `${options.serverUrl.replace(/\/+$/, '')}/api/v1`;
  }

  /** The JSON of the response. Rejects with a `CollabError`. */
  async json<T>(call: Call): Promise<T> {
    const { head, body } = await this.#send(call);
    return parseResponse(body, head) as T;
  }

  async #send(call: Call): Promise<{ head: ResponseHead; body: string }> {
    const { maxRetries = 4, retryDelayMs = 500 } = this.#options;
    // The same key at every attempt: the server then answers a repetition with the first response.
    const key = call.method === 'POST' ? (call.options?.idempotencyKey ?? crypto.randomUUID()) : undefined;
    let isLost = false;
    for (let attempt = 0; ; attempt++) {
      let error: CollabError;
      try {
        const { head, body } = await this.#attempt(call, key);
        if (head.status < 300) return { head, body };
        error = responseError(head, body);
      } catch (thrown) {
        error = asCollabError(thrown, `${call.method} ${call.path}`);
      }
      if (isLost && isGone(error) && call.method === 'DELETE')
        return { head: { status: 200, header: () => null }, body: '{"deleted":true}' };
      if (attempt >= maxRetries || !isTransient(error)) throw error;
      isLost ||= error.status === 0 || error.status >= 500;
      await pause(delayOf(error, retryDelayMs * 2 ** attempt), call.options?.signal);
    }
  }

  async #attempt(
    { method, path, query, body, form, headers, options }: Call,
    idempotencyKey: string | undefined,
  ): Promise<{ head: ResponseHead; body: string }> {
    const { secretKey, timeoutMs = 30_000, fetch: send = fetch } = this.#options;
    const timeout = new AbortController();
    const stop = (): void => timeout.abort();
    const timer = setTimeout(stop, timeoutMs);
    options?.signal?.addEventListener('abort', stop);
    if (options?.signal?.aborted === true) stop();
    try {
      const response = await send(this.#base + path + searchOf(query), {
        method,
        headers: {
          Authorization: `Bearer ${secretKey}`,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
          ...headers,
        },
        body: form ?? (body === undefined ? null : JSON.stringify(body)),
        signal: timeout.signal,
      });
      return {
        head: { status: response.status, header: (name) => response.headers.get(name) },
        body: await response.text(),
      };
    } catch (thrown) {
      if (options?.signal?.aborted === true)
        throw new CollabError('aborted', `${method} ${path} was cancelled.`, { cause: thrown });
      if (timeout.signal.aborted)
        throw new CollabError('timeout', `${method} ${path} got no answer within ${timeoutMs} ms.`, { cause: thrown });
      throw thrown;
    } finally {
      clearTimeout(timer);
      options?.signal?.removeEventListener('abort', stop);
    }
  }
}

/**
 * Whether the server says that the record does not exist. After an attempt whose response was lost, that attempt has
 * deleted it.
 */
function isGone({ code, status }: CollabError): boolean {
  return status === 404 && code !== 'route_not_found';
}

/**
 * Whether a repetition may succeed. A POST has an idempotency key, and the other methods have the same effect twice.
 */
function isTransient({ code, status, retryAfter }: CollabError): boolean {
  if (code === 'aborted') return false;
  if (retryAfter !== null && retryAfter > MAX_RETRY_AFTER_S) return false;
  return status === 0 || status === 429 || status >= 500 || code === 'write_conflict';
}

function delayOf({ retryAfter }: CollabError, backoffMs: number): number {
  const bound = Math.min(MAX_DELAY_MS, backoffMs);
  const jittered = bound / 2 + (Math.random() * bound) / 2;
  return retryAfter === null ? jittered : Math.max(retryAfter * 1_000, jittered);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(new CollabError('aborted', 'The call was cancelled.'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    if (signal?.aborted === true) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

function searchOf(query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value])
      if (one !== undefined) search.append(name, String(one));
  }
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}
