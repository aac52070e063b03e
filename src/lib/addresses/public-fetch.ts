import { lookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isPublicAddress, isPublicHost } from './public-address.ts';

const MAX_BYTES = 1024 * 1024;

/** A request of `publicRequest`. */
export interface PublicRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** Largest body of the answer in bytes. */
  readonly maxBytes: number;
  /** Ends the exchange. */
  readonly signal?: AbortSignal | undefined;
  /** Whether http is allowed besides https. */
  readonly allowHttp?: boolean;
  /** Whether private, local and special-purpose addresses are allowed. */
  readonly allowPrivate?: boolean;
}

/** The answer to `publicRequest`. */
export interface PublicAnswer {
  readonly status: number;
  /** Names in lower case; the lines of a field joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Sends a request to a URL of the public internet. Rejects if the host is private or local, or resolves to such an address (the
 * address that is checked is the one connected to), and if the body of the answer is larger than `maxBytes`. Does not follow
 * redirects.
 */
export function publicRequest(address: string, { method = 'GET', headers = {}, body, maxBytes, signal, allowHttp = false, allowPrivate = false }: PublicRequest): Promise<PublicAnswer> {
  const url = URL.canParse(address) ? new URL(address) : null;
  const protocols = allowHttp ? 'http or https' : 'https';
  if (url === null || !(url.protocol === 'https:' || (allowHttp && url.protocol === 'http:'))) return Promise.reject(new Error(`Not an ${protocols} URL of the public internet`));
  if (!allowPrivate && !isPublicHost(url.hostname)) return Promise.reject(new Error(`Not an ${protocols} URL of the public internet: ${url.hostname} is private or local`));
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, signal, agent: false, ...(allowPrivate ? {} : { lookup: publicLookup }) }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes > maxBytes) response.destroy(new Error(`The response is larger than ${maxBytes} bytes`));
      });
      response.on('error', reject);
      response.on('close', () => reject(new Error('The response was cut off')));
      response.on('end', () => resolve({ status: response.statusCode ?? 502, headers: headersOf(response), body: Buffer.concat(chunks) }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Requests an https URL as `publicRequest` does, with GET and at most 1 MiB, in the form of `fetch`. */
export async function publicFetch(address: string, { headers, signal }: { headers?: Headers; signal?: AbortSignal }): Promise<Response> {
  const { status, body } = await publicRequest(address, { headers: Object.fromEntries(headers ?? []), signal, maxBytes: MAX_BYTES });
  return new Response([204, 205, 304].includes(status) ? null : new Uint8Array(body), { status });
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]])));
}

type LookupCallback = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

function publicLookup(hostname: string, options: LookupOptions, callback: LookupCallback): void {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    const refused = error === null ? found.find(({ address }) => !isPublicAddress(address)) : undefined;
    const [first] = found ?? [];
    if (error !== null) callback(error, []);
    else if (refused !== undefined || first === undefined) callback(new Error(`${hostname} resolves to a private or local address`), []);
    else if (options.all === true) callback(null, found);
    else callback(null, first.address, first.family);
  });
}
