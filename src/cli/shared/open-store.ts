import { type ConfigSources, loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { finishRestore } from '../backup/replace-data.ts';
import { watchForInterruption } from '../terminal/interruption.ts';
import { hasStore, noFolderFailure } from './folder.ts';
import type { Invocation } from './invocation.ts';
import { operatorName } from './operator.ts';

/** How long closing the store may take after a signal. */
const CLOSE_MS = 3_000;

/**
 * Loads the configuration of a folder for a command that is about to use its data. If a restore of that data was
 * interrupted, finishes it first.
 *
 * @param flags values of flags by option path
 * @throws {ConfigError} if the configuration is invalid
 * @throws {Failure} if a restore is in progress
 */
export async function loadFolderConfig(dir: string, flags: ConfigSources['flags'] = {}): Promise<Config> {
  const config = loadConfig({ dir, env: process.env, flags });
  await finishRestore(config.dataDir);
  return config;
}

/**
 * Runs `work` on the store of a folder, whether or not a server is running on it, and closes the store afterwards.
 *
 * @throws {Failure} if the folder has no store
 * @throws {ConfigError} if its configuration is invalid
 */
export async function withStore<T>(
  { dir }: Invocation,
  work: (ctx: Context, config: Config) => Promise<T>,
): Promise<T> {
  const config = await loadFolderConfig(dir);
  if (!hasStore(config)) throw noFolderFailure(dir);
  return useStore(config, (ctx) => work(ctx, config));
}

/**
 * Opens the store of a configuration (creating it if there is none), runs `work` on it and closes it. On SIGINT or
 * SIGTERM the store is closed before `work` is done, which makes `work` fail.
 *
 * @throws {InterruptedError} after such a signal
 */
export async function useStore<T>(config: Config, work: (ctx: Context) => Promise<T>): Promise<T> {
  const { openContext } = await import('../../app.ts');
  const { ctx, close } = await openContext(config);
  let closing: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closing ??= close());
  const watch = watchForInterruption(closeOnce, CLOSE_MS);
  try {
    const result = await work({ ...ctx, operator: { kind: 'cli', id: operatorName() } });
    const interrupted = watch.interrupted();
    if (interrupted !== null) throw interrupted;
    return result;
  } catch (error) {
    // After a signal, `work` fails only because its store has been closed.
    throw watch.interrupted() ?? error;
  } finally {
    await closeOnce();
    watch.done();
  }
}
