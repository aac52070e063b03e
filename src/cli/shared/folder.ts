import { join } from 'node:path';
import { hasStoreInFolder } from '../../config/engines.ts';
import type { Config } from '../../config/schema.ts';
import { exists } from '../../lib/files/exists.ts';
import { Failure } from '../failure.ts';
import { shellWord } from '../../lib/shell-word.ts';

/** The name of the schema of config.json, which is beside it. */
export const SCHEMA_NAME = 'config.schema.json';

/** The configuration file of a folder. */
export function configFile(dir: string): string {
  return join(dir, 'config.json');
}

/** The schema of config.json for editors, beside it. */
export function schemaFile(dir: string): string {
  return join(dir, SCHEMA_NAME);
}

/** The folder of the store in a data folder. If it exists, the data folder is complete. */
export function storeFolder(config: Config): string {
  return join(config.dataDir, 'store');
}

/** The folder of the uploaded files in a data folder. It is created with the first file. */
export function filesFolder(config: Config): string {
  return join(config.dataDir, 'files');
}

/**
 * Whether there is a store, as far as that can be known without opening it: a server of its own may be empty. There may
 * be one without a config.json, because options may come from variables.
 *
 * @throws {NodeJS.ErrnoException} if this user may not look
 */
export function hasStore(config: Config): boolean {
  return !hasStoreInFolder(config) || exists(storeFolder(config));
}

/**
 * Refuses a command that works on the files of a store in a folder, when the store is a server of its own.
 *
 * @param instead what to do there
 * @throws {Failure}
 */
export function requireStoreInFolder(config: Config, ...instead: readonly string[]): void {
  if (hasStoreInFolder(config)) return;
  throw new Failure(
    'This command works on a store in a folder, but the option store.url names a PostgreSQL.',
    instead,
    2,
    'store_elsewhere',
  );
}

/** The failure of a command that needs a Collab folder where there is none. */
export function noFolderFailure(dir: string): Failure {
  return new Failure(`There is no Collab folder at ${dir}.`, [
    'If it is elsewhere, name it: --dir <folder>',
    `If there is none yet, create it: collab init --dir ${shellWord(dir)}`,
  ]);
}
