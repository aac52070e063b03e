import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';

/** The global options of a command line. */
export interface Invocation {
  /** Absolute path of the folder of config.json. */
  readonly dir: string;
  /** Whether to print one JSON document instead of text. */
  readonly json: boolean;
}

/** The global options that a command was called with. */
export function invocationOf(command: Command): Invocation {
  const { dir, json } = command.optsWithGlobals<{ dir?: string; json?: boolean }>();
  return { dir: chooseFolder(dir), json: json === true };
}

/**
 * The folder that --dir names, else the variable COLLAB_DIR; without both the current folder if it contains a
 * config.json, else ./collab.
 */
export function chooseFolder(dir: string | undefined): string {
  const named = dir ?? process.env['COLLAB_DIR'];
  if (named !== undefined && named !== '') return resolve(named);
  return existsSync('config.json') ? process.cwd() : resolve('collab');
}
