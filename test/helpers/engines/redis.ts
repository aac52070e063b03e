import type { Test } from 'tap';
import { tempFolder } from '../temp-folder.ts';
import { stablePort } from '../cluster.ts';
import { accepts, findProgram, type Instance, killInstance, signalInstance, startInstance } from './instance.ts';

/** The programs that `startRedis` needs, for `skipWithout`. */
export const REDIS = ['redis-server'] as const;

/** A private Redis on a port of the loopback interface. It writes nothing to the disk. */
export interface Redis {
  readonly port: number;
  /** `redis://` URL of database 0. */
  readonly url: string;
  /** Sends a signal, such as SIGSTOP. */
  signal(signal: NodeJS.Signals): void;
  /** Kills it (SIGKILL). */
  kill(): Promise<void>;
  /** Starts it again on the same port, empty, after `kill`. */
  restart(): Promise<void>;
}

/**
 * Starts a Redis that ends with the test. Skip the test by `skipWithout(...REDIS)`.
 *
 * @param args further arguments, such as `--requirepass x`
 */
export async function startRedis(t: Pick<Test, 'teardown'>, ...args: readonly string[]): Promise<Redis> {
  const program = findProgram('redis-server');
  if (program === undefined) throw new Error('redis-server not found');
  const cwd = tempFolder(t);
  const port = await stablePort();
  let instance: Instance;
  const start = async (): Promise<void> => {
    const own = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    instance = startInstance(program, [...own, ...args], { cwd });
    await accepts(instance, port);
  };
  const kill = (): void => signalInstance(instance, 'SIGKILL');
  process.once('exit', kill);
  t.teardown(async () => {
    process.off('exit', kill);
    await killInstance(instance);
  });
  await start();
  return {
    port,
    url: `redis://127.0.0.1:${port}/0`,
    signal: (signal) => signalInstance(instance, signal),
    kill: () => killInstance(instance),
    restart: start,
  };
}
