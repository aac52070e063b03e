import { isIP } from 'node:net';

/** Whether a server that listens on this host, an address or a name, is reachable from its own machine only. */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith('127.');
  return host === '::1' || host === 'localhost';
}
