import { isIP } from 'node:net';
import type { Config } from '../../config/schema.ts';

/**
 * Whether a page that was fetched under this `Host` is one of this server: by an address, a loopback name, or a name that
 * is configured. A foreign name means that another site made its own name lead here (DNS rebinding), to read as itself
 * what the server gives.
 */
export function isOwnHost(host: string, { host: listens, publicUrl }: Pick<Config, 'host' | 'publicUrl'>): boolean {
  const name = host.replace(/:\d*$/, '').toLowerCase();
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
  if (name === 'localhost' || name.endsWith('.localhost')) return true;
  return name === listens.toLowerCase() || (publicUrl !== '' && name === new URL(publicUrl).hostname);
}
