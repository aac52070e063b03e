import { lookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { Agent, request as requestHttp, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { Duplex } from 'node:stream';
import { isPublicAddress, isPublicHost } from './public-address.ts';

const MAX_BYTES = 1024 * 1024;
/**
 * An idle connection is kept for this long: less than the 5 s after which servers on Node.js close theirs, and usual
 * servers later, so that few requests meet a connection that is being closed.
 */
const KEPT = { keepAlive: true, timeout: 4_000, maxFreeSockets: 32 } as const;
/**
 * Connections to checked addresses, and to any: a connection that one request may open is no way for another around its
 * check.
 */
const agents = {
  public: { http: new Agent(KEPT), https: new HttpsAgent(KEPT) },
  any: { http: new Agent(KEPT), https: new HttpsAgent(KEPT) },
} as const;

/** A request of `publicRequest`. */
export interface PublicRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** Largest body of the response in bytes. */
  readonly maxBytes: number;
  /** Ends the exchange. */
  readonly signal?: AbortSignal | undefined;
  /** Whether http is allowed besides https. */
  readonly allowHttp?: boolean;
  /** Whether private, local and special-purpose addresses are allowed. */
  readonly allowPrivate?: boolean;
}

/** The response to `publicRequest`. */
export interface PublicResponse {
  readonly status: number;
  /** Names in lower case; the lines of a field joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Sends a request to a URL of the public internet. Rejects if the host is private or local, or resolves to such an
 * address (the address that is checked is the one connected to), and if the body of the response is larger than
 * `maxBytes`. Does not follow redirects. Connections are kept for further requests; if the server closes one before it
 * answers, the request is sent once more on a new one.
 */
export async function publicRequest(address: string, request: PublicRequest): Promise<PublicResponse> {
  const { allowPrivate = false } = request;
  const url = requestable(address, request);
  try {
    return await exchange(
      url,
      request,
      agents[allowPrivate ? 'any' : 'public'][url.protocol === 'https:' ? 'https' : 'http'],
    );
  } catch (error) {
    if (!(error instanceof ClosedWhileIdle)) throw error;
    return exchange(url, request, false);
  }
}

/** The URL of a request leads to a private or local address. */
export class PrivateAddressError extends Error {}

/**
 * Parses the URL of a request. What a name resolves to is not looked up.
 *
 * @throws {PrivateAddressError} if its host is private or local
 * @throws {Error} if it has another protocol, or is no URL
 */
export function requestable(
  address: string,
  { allowHttp = false, allowPrivate = false }: Pick<PublicRequest, 'allowHttp' | 'allowPrivate'>,
): URL {
  const url = URL.canParse(address) ? new URL(address) : null;
  const protocols = allowHttp ? 'http or https' : 'https';
  if (url === null || !(url.protocol === 'https:' || (allowHttp && url.protocol === 'http:')))
    throw new Error(`Not an ${protocols} URL of the public internet`);
  if (!allowPrivate && !isPublicHost(url.hostname))
    throw new PrivateAddressError(
      `Not an ${protocols} URL of the public internet: ${url.hostname} is private or local`,
    );
  return url;
}

/** The server closed a kept connection before it answered. It has probably not seen the request. */
class ClosedWhileIdle extends Error {}

/** Sends the request on a connection of the agent, or on a new one, and returns the response. */
function exchange(
  url: URL,
  { method = 'GET', headers = {}, body, maxBytes, signal, allowPrivate = false }: PublicRequest,
  agent: Agent | false,
): Promise<PublicResponse> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    let isAnswered = false;
    const sent = request(
      url,
      { method, headers, signal, agent, ...(allowPrivate ? {} : { lookup: publicLookup }) },
      (response) => {
        isAnswered = true;
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          chunks.push(chunk);
          if (bytes > maxBytes) response.destroy(new Error(`The response is larger than ${maxBytes} bytes`));
        });
        response.on('error', reject);
        response.on('close', () => reject(new Error('The response was cut off')));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 502, headers: headersOf(response), body: Buffer.concat(chunks) }),
        );
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) => {
      const isClosed = error.code === 'ECONNRESET' || error.code === 'EPIPE';
      reject(isClosed && sent.reusedSocket ? new ClosedWhileIdle(error.message) : error);
    });
    // A 101 or the answer to CONNECT is no `response`, and leaves the socket to the listener.
    for (const event of ['upgrade', 'connect'] as const) {
      sent.on(event, ({ statusCode }: IncomingMessage, socket: Duplex) => {
        socket.destroy();
        reject(new Error(`answered ${statusCode ?? 101}: it switched to another protocol, which was not asked for`));
      });
    }
    // Of an answer that has begun, its own `close` tells: it may still be read when the request closes.
    sent.on('close', () => {
      if (!isAnswered) reject(new Error('The connection was closed before an answer'));
    });
    sent.end(body);
  });
}

/** Requests an https URL as `publicRequest` does, with GET and at most 1 MiB, in the form of `fetch`. */
export async function publicFetch(
  address: string,
  { headers, signal }: { headers?: Headers; signal?: AbortSignal },
): Promise<Response> {
  const { status, body } = await publicRequest(address, {
    headers: Object.fromEntries(headers ?? []),
    signal,
    maxBytes: MAX_BYTES,
  });
  return new Response([204, 205, 304].includes(status) ? null : new Uint8Array(body), { status });
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
    ),
  );
}

type LookupCallback = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

function publicLookup(hostname: string, options: LookupOptions, callback: LookupCallback): void {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    const refused = error === null ? found.find(({ address }) => !isPublicAddress(address)) : undefined;
    const [first] = found ?? [];
    if (error !== null) callback(error, []);
    else if (refused !== undefined || first === undefined)
      callback(new PrivateAddressError(`${hostname} resolves to a private or local address`), []);
    else if (options.all === true) callback(null, found);
    else callback(null, first.address, first.family);
  });
}
