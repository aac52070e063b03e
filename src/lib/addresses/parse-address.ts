import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Parses an IP address. An IPv4 address mapped into IPv6 (`::ffff:10.0.0.1`) becomes IPv4. Null if the text is not an
 * address.
 */
export function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  // ipaddr.js alone also accepts IPv4 in octal, in hexadecimal and with fewer than four parts.
  return isIP(text) === 0 ? null : ipaddr.process(spellOut(text));
}

/** Parses an address with or without a prefix length: `10.0.0.0/8`, `::1`. Null if the text is neither. */
export function parseNetwork(text: string): readonly [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number] | null {
  const family = isIP(text);
  const cidr = spellOut(family === 0 ? text : `${text}/${family === 4 ? 32 : 128}`);
  return ipaddr.IPv4.isValidCIDRFourPartDecimal(cidr) || ipaddr.IPv6.isValidCIDR(cidr) ? ipaddr.parseCIDR(cidr) : null;
}

/**
 * ipaddr.js reads `::10.0.0.1` (deprecated) as `::ffff:10.0.0.1`, which is another address, but reads `::0:10.0.0.1`
 * right.
 */
function spellOut(text: string): string {
  return text.replace(/^::(?=\d+\.)/, '::0:');
}
