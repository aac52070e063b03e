import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { parseAddress } from './parse-address.ts';

const { IPv4, IPv6 } = ipaddr;

/**
 * The only IPv6 addresses that are assigned to the public internet (RFC 4291, section 2.4). Others, such as
 * `::127.0.0.1`, may mean anything.
 */
const GLOBAL_UNICAST = IPv6.parseCIDR('2000::/3');

/**
 * Whether the text is an IP address of the public internet: not private, local, reserved, multicast or of a translation
 * range.
 */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  if (address?.range() !== 'unicast') return false;
  return address instanceof IPv4 || address.match(GLOBAL_UNICAST);
}

/**
 * Whether the host of a URL may be requested: a name other than localhost, or a public address (IPv6 in brackets). What
 * a name resolves to has to be checked too.
 */
export function isPublicHost(hostname: string): boolean {
  const bare = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (isIP(bare) !== 0) return isPublicAddress(bare);
  return bare !== 'localhost' && !bare.endsWith('.localhost');
}
