import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { messageOf } from '../../lib/thrown.ts';
import { EngineError, type EngineOption } from '../../ports/engine-error.ts';

/** A database, as a URL names it. */
export interface Target {
  /** The option that had the URL. */
  readonly option: EngineOption;
  /** Host name, address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string | undefined;
  readonly tls: ConnectionOptions | false;
  /** `host:port/database as user`, for messages. */
  readonly label: string;
}

const SSL_MODES = 'disable, require (encrypted, but anybody may answer), verify-ca, verify-full';

/**
 * Parses `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…&sslcert=…&sslkey=…`, or with
 * `?host=/folder` for a Unix socket. Parameters mean what they do to libpq, `sslmode` is `disable` when absent, and
 * others are refused. Throws an `EngineError` without the password.
 */
export function parseTarget(option: EngineOption, text: string): Target {
  const refuse = (message: string, cause?: unknown): EngineError =>
    new EngineError(option, message, { retry: false, cause });
  const form = 'write it as postgres://user:password@host:port/database';
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw refuse(`the URL cannot be parsed: ${form}, with special characters in the password as %XX`);
  }
  if (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:')
    throw refuse(`the URL begins with ${url.protocol}// instead of postgres://: ${form}`);
  const query = new Map(url.searchParams);
  const take = (name: string): string | undefined => {
    const value = query.get(name);
    query.delete(name);
    return value === '' ? undefined : value;
  };
  let names: readonly [user: string, password: string, database: string];
  try {
    const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(decodeURIComponent);
    names = [user ?? '', password ?? '', database ?? ''];
  } catch (error) {
    throw refuse(`the URL has a % that begins no escape: write it as %25`, error);
  }
  const [user, password, database] = names;
  const host = take('host') ?? decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, '$1');
  if (host === '') throw refuse(`the URL names no host: ${form}`);
  if (user === '') throw refuse(`the URL names no user: ${form}`);
  if (database === '' || database.includes('/')) throw refuse(`the URL names no database: ${form}`);
  const port = url.port === '' ? 5432 : Number(url.port);
  const tls = tlsOf(host, take, refuse);
  const [unknown] = query.keys();
  if (unknown !== undefined)
    throw refuse(
      `the URL has the parameter ${unknown}, which is not supported: host, sslmode, sslrootcert, sslcert and sslkey are`,
    );
  const label = `${isIP(host) === 6 ? `[${host}]` : host}:${port}/${database} as ${user}`;
  return { option, host, port, database, user, password: password === '' ? undefined : password, tls, label };
}

function tlsOf(
  host: string,
  take: (name: string) => string | undefined,
  refuse: (message: string, cause?: unknown) => EngineError,
): ConnectionOptions | false {
  const file = (name: string): { text: string } | undefined => {
    const path = take(name);
    if (path === undefined) return undefined;
    try {
      return { text: readFileSync(path, 'utf8') };
    } catch (error) {
      throw refuse(`${name} cannot be read: ${messageOf(error)}`, error);
    }
  };
  const [ca, cert, key] = [file('sslrootcert')?.text, file('sslcert')?.text, file('sslkey')?.text];
  const mode = take('sslmode') ?? (ca === undefined && cert === undefined ? 'disable' : 'verify-full');
  const options: ConnectionOptions = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(isIP(host) === 0 ? { servername: host } : {}),
  };
  switch (mode) {
    case 'disable':
      return false;
    case 'no-verify':
      return { ...options, rejectUnauthorized: false };
    case 'require':
      // As libpq does: with a certificate authority, `require` verifies as `verify-ca`.
      return ca === undefined
        ? { ...options, rejectUnauthorized: false }
        : { ...options, checkServerIdentity: () => undefined };
    case 'verify-ca':
      return { ...options, checkServerIdentity: () => undefined };
    case 'verify-full':
      return options;
    default:
      throw refuse(`sslmode is one of ${SSL_MODES}, not ${mode}`);
  }
}
