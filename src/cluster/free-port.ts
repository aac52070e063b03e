import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ExitCode, StartError } from './exit.ts';

const RETRY_MS = 25;
/**
 * Where a port is chosen: below the ports that Linux gives to clients by itself (ip_local_port_range begins at 32 768;
 * macOS and Windows begin at 49 152), so that no client has it by the time that the workers listen.
 */
const CHOSEN_FROM = 20_000;
const CHOSEN_BELOW = 32_768;
/** How many of those are tried before the system chooses. */
const CHOICES = 100;

/** The names of the options that set a host and a port. */
export interface ListenOptions {
  readonly host: string;
  readonly port: string;
}

/** The options of the listener of /metrics. */
export const metricsOptions: ListenOptions = { host: 'metrics.host', port: 'metrics.port' };

/**
 * Checks that a server can listen on a host and port, by binding exclusively and closing again. Workers share their
 * port, so without this check the kernel would let a second server share it too, unnoticed.
 *
 * @param port 0 for any free one
 * @param timeoutMs how long to wait for a port in use to become free
 * @param names the options that the error names; those of the API if absent
 * @returns the port
 * @throws {StartError} with the reason, if it cannot listen
 */
export async function findFreePort(
  host: string,
  port: number,
  timeoutMs: number,
  names?: ListenOptions,
): Promise<number> {
  if (port === 0) return chooseFreePort(host, names);
  const giveUpAt = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await bindOnce(host, port);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EADDRINUSE' || performance.now() >= giveUpAt)
        throw explainListen(code ?? String(error), host, port, names);
      await delay(RETRY_MS);
    }
  }
}

async function chooseFreePort(host: string, names?: ListenOptions): Promise<number> {
  for (let choice = 0; choice < CHOICES; choice++) {
    const port = randomInt(CHOSEN_FROM, CHOSEN_BELOW);
    const free = await bindOnce(host, port).catch(({ code }: NodeJS.ErrnoException) => {
      if (code !== 'EADDRINUSE' && code !== 'EACCES') throw explainListen(code ?? 'unknown', host, port, names);
      return null;
    });
    if (free !== null) return free;
  }
  return bindOnce(host, 0);
}

function bindOnce(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : port));
    });
  });
}

/** The error for a failed listen, for the operator. */
export function explainListen(
  code: string,
  host: string,
  port: number,
  names: ListenOptions = { host: 'host', port: '--port' },
): StartError {
  switch (code) {
    case 'EADDRINUSE':
      return new StartError(
        `Port ${port} on ${host} is in use by another program. Stop that program, or choose another port with ${names.port}.`,
      );
    case 'EACCES':
      return new StartError(
        `This user is not allowed to listen on port ${port}. Choose a port from 1024 up with ${names.port}, ` +
          `and put a proxy on port ${port}.`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new StartError(
        `${names.host} ${host} is not an address of this machine (${code}). Use 127.0.0.1, 0.0.0.0 or one of its own addresses.`,
        ExitCode.badConfiguration,
      );
    default:
      return new StartError(`Cannot listen on ${host}, port ${port}: ${code}.`);
  }
}
