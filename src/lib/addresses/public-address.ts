import { isIP } from 'node:net';
import { parseAddress } from './parse-address.ts';

/** Whether the text is an IP address of the public internet: not private, local, reserved, multicast or of a translation range. */
export function isPublicAddress(text: string): boolean {
  return parseAddress(text)?.range() === 'unicast';
}

/**
 * Whether the host of a URL may be requested: a name other than localhost, or a public address (IPv6 in brackets). What a
 * name resolves to has to be checked too.
 */
export function isPublicHost(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '').toLowerCase();
  if (isIP(bare) !== 0) return isPublicAddress(bare);
  return bare !== 'localhost' && !bare.endsWith('.localhost');
}
