import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { type ConfigSources, loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { Failure } from '../failure.ts';
import { watchForInterruption } from '../terminal/interruption.ts';
import { shellWord } from '../terminal/output.ts';
import { finishRestore } from '../backup/restore-moves.ts';

/** What every command is told: the folder it works in and how it answers. */
export interface Invocation {
  /** Absolute path of the folder that holds config.json. */
  readonly dir: string;
  /** Whether to print one JSON document instead of text for people. */
  readonly json: boolean;
}

/** The folder and form of output that a command was called with. */
export function invocation(command: Command): Invocation {
  const { dir, json } = command.optsWithGlobals<{ dir?: string; json?: boolean }>();
  return { dir: chooseFolder(dir), json: json === true };
}

/** The folder that --dir names; without it the current one if it holds a config.json, else ./collab. */
export function chooseFolder(dir: string | undefined): string {
  if (dir !== undefined) return resolve(dir);
  return existsSync('config.json') ? process.cwd() : resolve('collab');
}

/** The configuration file of a folder. */
export function configFile(dir: string): string {
  return join(dir, 'config.json');
}

/** The store inside a data folder. Where it exists, the data folder has been set up whole. */
export function storeFolder(config: Config): string {
  return join(config.dataDir, 'store');
}

/** The files inside a data folder; made with the first one. */
export function filesFolder(config: Config): string {
  return join(config.dataDir, 'files');
}

/** Whether there is a store already. A config.json need not be: its options may come from variables. */
export function hasStore(config: Config): boolean {
  return existsSync(storeFolder(config));
}

/**
 * The configuration of a folder that a command is about to use. A restore of it that was interrupted is finished first.
 *
 * @param flags texts of flags by the path of their option
 * @throws {ConfigError} when the configuration is faulty
 * @throws {Failure} when a restore is under way
 */
export async function configOf(dir: string, flags: ConfigSources['flags'] = {}): Promise<Config> {
  const config = loadConfig({ dir, env: process.env, flags });
  await finishRestore(config.dataDir);
  return config;
}

/**
 * Runs `work` on the store of a folder, beside a running server or without one, and closes it after.
 *
 * @throws {Failure} when the folder has not been set up
 * @throws {ConfigError} when its configuration is faulty
 */
export async function withStore<T>({ dir }: Invocation, work: (ctx: Context, config: Config) => Promise<T>): Promise<T> {
  const config = await configOf(dir);
  if (!hasStore(config)) throw missingFolder(dir);
  return useStore(config, (ctx) => work(ctx, config));
}

/**
 * Opens the store of a configuration, making it where there is none, runs `work` on it and closes it; at SIGINT and SIGTERM
 * before the work is done.
 *
 * @throws {Interrupted} after such a signal
 */
export async function useStore<T>(config: Config, work: (ctx: Context) => Promise<T>): Promise<T> {
  const { openContext } = await import('../../app.ts');
  const { ctx, close } = await openContext(config);
  let closing: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closing ??= close());
  const watch = watchForInterruption(closeOnce);
  try {
    const result = await work(ctx);
    const interrupted = watch.interrupted();
    if (interrupted !== null) throw interrupted;
    return result;
  } catch (error) {
    // The work fails because its store has been closed.
    throw watch.interrupted() ?? error;
  } finally {
    await closeOnce();
    watch.done();
  }
}

/** The failure of a command that needs a folder where there is none. */
export function missingFolder(dir: string): Failure {
  return new Failure(`There is no Collab folder at ${dir}.`, [
    `If it is elsewhere, name it: --dir <folder>.`,
    `If there is none yet, make it: collab init --dir ${shellWord(dir)}`,
  ]);
}
