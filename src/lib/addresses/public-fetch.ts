import { lookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { request } from 'node:https';
import { BlockList, isIP } from 'node:net';

/** Networks that a server must not be led into by an address that somebody else chose. */
const innerNetworks = new BlockList();
for (const [address, bits] of [
  ['0.0.0.0', 8], ['10.0.0.0', 8], ['100.64.0.0', 10], ['127.0.0.0', 8], ['169.254.0.0', 16], ['172.16.0.0', 12], ['192.0.0.0', 24],
  ['192.168.0.0', 16], ['198.18.0.0', 15], ['224.0.0.0', 3],
] as const) {
  innerNetworks.addSubnet(address, bits, 'ipv4');
}
for (const [address, bits] of [
  ['::', 127], ['64:ff9b::', 96], ['64:ff9b:1::', 48], ['100::', 64], ['2002::', 16], ['fc00::', 7], ['fe80::', 10], ['ff00::', 8],
] as const) {
  innerNetworks.addSubnet(address, bits, 'ipv6');
}

/** Whether an IP address is one of the public internet. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && !innerNetworks.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/** Whether the host of a URL may be asked at all: a name other than localhost, or a public address (IPv6 in brackets). */
export function isPublicHost(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '').toLowerCase();
  if (isIP(bare) !== 0) return isPublicAddress(bare);
  return bare !== 'localhost' && !bare.endsWith('.localhost');
}

const MOST_BYTES = 1024 * 1024;

/**
 * Gets an https address of the public internet: neither the name nor what it resolves to may be private, and the address
 * checked is the one connected to. Redirects are not followed. At most 1 MiB of body; rejects otherwise.
 */
export function publicFetch(address: string, { headers, signal }: { headers?: Headers; signal?: AbortSignal }): Promise<Response> {
  const url = new URL(address);
  if (url.protocol !== 'https:' || !isPublicHost(url.hostname)) return Promise.reject(new Error('Not an https address of the public internet'));
  return new Promise((resolve, reject) => {
    const sent = request(url, { lookup: publicLookup, headers: Object.fromEntries(headers ?? []), signal }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes > MOST_BYTES) response.destroy(new Error('The answer is larger than 1 MiB'));
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
    else if (refused !== undefined || first === undefined) callback(new Error(`${hostname} leads to a private or local address`), []);
    else if (options.all === true) callback(null, found);
    else callback(null, first.address, first.family);
  });
}
