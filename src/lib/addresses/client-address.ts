import { isIPv4, isIPv6 } from 'node:net';
import type { Networks } from './networks.ts';

/**
 * Whom a request comes from. A peer outside `trusted` is the client itself and its `X-Forwarded-For` is ignored: anyone
 * can write one. From a trusted proxy the header is walked from right to left, and the first hop that is not a trusted
 * proxy is the client; a hop that is no address ends the walk at the one before it.
 *
 * @param peer the other end of the connection, as text
 * @param forwardedFor all `X-Forwarded-For` lines in order, joined by commas; empty for none
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
 * without leading zeros or zone. Null for text that is no address.
 */
export function normaliseAddress(text: string): string | null {
  if (isIPv4(text)) return text;
  const zone = text.indexOf('%');
  const bare = zone < 0 ? text : text.slice(0, zone);
  if (!isIPv6(bare)) return null;
  const groups = groupsOf(bare);
  return isMapped(groups) ? dotted(groups[6] ?? 0, groups[7] ?? 0) : groups.map((group) => group.toString(16)).join(':');
}

/**
 * What limits are counted on: an IPv4 address itself, the /64 of an IPv6 one, since a single host commonly has all of it.
 * Takes the form of `normaliseAddress`.
 */
export function addressBlock(address: string): string {
  if (!address.includes(':')) return address;
  return `${address.split(':', 4).join(':')}::/64`;
}

function groupsOf(text: string): number[] {
  const [head = '', tail] = text.split('::');
  const left = parseGroups(head);
  if (tail === undefined) return left;
  const right = parseGroups(tail);
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

function parseGroups(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

function isMapped(groups: readonly number[]): boolean {
  return groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
}

function dotted(high: number, low: number): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

function withoutPort(hop: string): string {
  if (hop.startsWith('[')) return hop.slice(1, hop.indexOf(']'));
  const colon = hop.indexOf(':');
  return colon >= 0 && colon === hop.lastIndexOf(':') ? hop.slice(0, colon) : hop;
}
