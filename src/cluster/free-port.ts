import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ExitCode, StartError } from './exit.ts';

const LOOK_AGAIN_MS = 25;

/**
 * Finds out whether a server can listen there, by binding alone and letting go. Workers share their port, so the
 * kernel would let a second server share it too, unnoticed: this is what notices.
 *
 * @param port 0 lets the system choose
 * @param patienceMs how long a taken port may take to come free
 * @returns the port
 * @throws {StartError} that says why not
 */
export async function findFreePort(host: string, port: number, patienceMs: number): Promise<number> {
  const giveUp = performance.now() + patienceMs;
  for (;;) {
    try {
      return await bindOnce(host, port);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EADDRINUSE' || performance.now() >= giveUp) throw explainListen(code ?? String(error), host, port);
      await delay(LOOK_AGAIN_MS);
    }
  }
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

/** What an operator is told when nobody can listen there. `names`: how the host and the port are configured. */
export function explainListen(code: string, host: string, port: number, names = { host: 'host', port: '--port' }): StartError {
  switch (code) {
    case 'EADDRINUSE':
      return new StartError(`Port ${port} on ${host} is in use by another program. Stop that, or choose another port with ${names.port}.`);
    case 'EACCES':
      return new StartError(`This user may not listen on port ${port}. Choose one of 1024 or above with ${names.port}, and let a proxy listen on ${port}.`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new StartError(`${names.host} ${host} is no address of this machine (${code}). Use 127.0.0.1, 0.0.0.0 or one of its own addresses.`, ExitCode.badConfiguration);
    default:
      return new StartError(`Cannot listen on ${host}, port ${port}: ${code}.`);
  }
}
