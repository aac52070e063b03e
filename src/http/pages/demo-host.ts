import { isIP } from 'node:net';
import type { Config } from '../../config/schema.ts';

/**
 * Whether a `Host` belongs to this server: an IP address, a loopback name, or a configured name. Any other name may be
 * that of a site that resolves its own name to this server (DNS rebinding), so that its pages can read the responses.
 */
export function isOwnHost(host: string, { host: listenHost, publicUrl }: Pick<Config, 'host' | 'publicUrl'>): boolean {
  const name = host.replace(/:\d*$/, '').toLowerCase();
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  if (name === 'localhost' || name.endsWith('.localhost')) return true;
  return name === listenHost.toLowerCase() || (publicUrl !== '' && name === new URL(publicUrl).hostname);
}
