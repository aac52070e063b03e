import { isIPv4, isIPv6 } from 'node:net';
import { BoundedMap } from '../bounded-map.ts';
import type { Networks } from './networks.ts';
import { parseAddress } from './parse-address.ts';

/** How many addresses are kept in their normalised form: every request needs that of its client. */
const KNOWN_ADDRESSES = 10_000;
/** The longest text, in characters, that is kept. Every IPv6 address without a zone fits. */
const LONGEST_KEPT = 45;
const known = new BoundedMap<string, string | null>(KNOWN_ADDRESSES);

/**
 * The address of the client of a request. A peer outside of `trusted` is the client itself, and its `X-Forwarded-For`
 * is ignored, because any client can send one. If the peer is a trusted proxy, the header is read from right to left,
 * and the first hop that is not a trusted proxy is the client. A hop that is not an address ends the search at the hop
 * before it.
 *
 * @param peer the other end of the connection
 * @param forwardedFor all `X-Forwarded-For` lines in order, joined by commas; '' for none
 * @returns an address in the form of `normaliseAddress`
 */
export function clientAddress(peer: string, forwardedFor: string, trusted: Networks): string {
  let client = normaliseAddress(peer) ?? peer;
  if (forwardedFor === '' || !trusted.has(client)) return client;
  for (const hop of forwardedFor.split(',').reverse()) {
    const address = normaliseAddress(withoutPort(hop.trim()));
    if (address === null) return client;
    client = address;
    if (!trusted.has(client)) return client;
  }
  return client;
}

/**
 * One form per address: dotted IPv4, also for an IPv4 address mapped into IPv6; IPv6 as eight groups in lower case
 * without leading zeros or zone. Null for text that is not an address.
 */
export function normaliseAddress(text: string): string | null {
  let address = known.get(text);
  if (address !== undefined) return address;
  address = normalise(text);
  if (text.length <= LONGEST_KEPT) known.set(text, address);
  return address;
}

function normalise(text: string): string | null {
  if (isIPv4(text)) return text;
  const zone = text.indexOf('%');
  const bare = zone < 0 ? text : text.slice(0, zone);
  return isIPv6(bare) ? (parseAddress(bare)?.toNormalizedString() ?? null) : null;
}

/**
 * The addresses that share a limit: an IPv4 address itself, or the /64 of an IPv6 address, because a single host
 * commonly has all of it. Takes the form of `normaliseAddress`.
 */
export function addressBlock(address: string): string {
  if (!address.includes(':')) return address;
  return `${address.split(':', 4).join(':')}::/64`;
}

function withoutPort(hop: string): string {
  if (hop.startsWith('[')) return hop.slice(1, hop.indexOf(']'));
  const colon = hop.indexOf(':');
  return colon >= 0 && colon === hop.lastIndexOf(':') ? hop.slice(0, colon) : hop;
}
