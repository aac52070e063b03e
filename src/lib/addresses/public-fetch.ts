import { lookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { request } from 'node:https';
import { isPublicAddress, isPublicHost } from './public-address.ts';

const MAX_BYTES = 1024 * 1024;

/**
 * Requests an https URL of the public internet with GET. Rejects if the host is private or local, or resolves to such an
 * address (the address that is checked is the one connected to), and if the body is larger than 1 MiB. Does not follow
 * redirects.
 */
export function publicFetch(address: string, { headers, signal }: { headers?: Headers; signal?: AbortSignal }): Promise<Response> {
  const url = new URL(address);
  if (url.protocol !== 'https:' || !isPublicHost(url.hostname)) return Promise.reject(new Error('Not an https URL of the public internet'));
  return new Promise((resolve, reject) => {
    const sent = request(url, { lookup: publicLookup, headers: Object.fromEntries(headers ?? []), signal }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes > MAX_BYTES) response.destroy(new Error('The response is larger than 1 MiB'));
      });
      response.on('error', reject);
      response.on('end', () => {
        const status = response.statusCode ?? 502;
        resolve(new Response([204, 205, 304].includes(status) ? null : Buffer.concat(chunks), { status }));
      });
    });
    sent.on('error', reject);
    sent.end();
  });
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
