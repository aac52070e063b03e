import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { hasFilesInFolder, hasStoreInFolder } from '../../config/engines.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { exists } from '../../lib/files/exists.ts';
import { usageFailure } from '../failure.ts';
import { pathArgument } from '../option-values.ts';
import { configFile } from '../shared/folder.ts';

/** The configuration that data is moved to. */
export interface TargetConfig {
  /** The folder of its config.json. */
  readonly dir: string;
  readonly config: Config;
}

/**
 * Loads the configuration of a target from its config.json, or from the folder that has it. Variables are not read:
 * they are those of the source.
 *
 * @throws {Failure} if there is none
 * @throws {ConfigError} if it is invalid
 */
export function loadTargetConfig(text: string): TargetConfig {
  const path = resolve(pathArgument('--to', text));
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (!isFolder && basename(path) !== 'config.json')
    throw usageFailure(
      `--to must name a config.json, or a folder that has one, not ${path}.`,
      'Write the configuration of the new server into <folder>/config.json, and name that.',
    );
  const dir = isFolder ? path : dirname(path);
  if (!exists(configFile(dir)))
    throw usageFailure(
      `There is no config.json in ${dir}, so nothing says where to move the data.`,
      'Write the configuration of the new server into it: store.url, blobs.url, or another dataDir.',
    );
  return { dir, config: loadConfig({ dir, env: {}, flags: {} }) };
}

/** Whether both configurations name the same files. */
export function hasSameFiles(one: Config, other: Config): boolean {
  if (hasFilesInFolder(one) !== hasFilesInFolder(other)) return false;
  if (hasFilesInFolder(one)) return folderOf(one) === folderOf(other);
  return one.blobs.url === other.blobs.url && one.blobs.endpoint === other.blobs.endpoint;
}

/** Whether both configurations name the same store. */
export function hasSameStore(one: Config, other: Config): boolean {
  if (hasStoreInFolder(one) !== hasStoreInFolder(other)) return false;
  return hasStoreInFolder(one) ? folderOf(one) === folderOf(other) : databaseOf(one) === databaseOf(other);
}

function folderOf({ dataDir }: Config): string {
  return exists(dataDir) ? realpathSync(dataDir) : dataDir;
}

/** A URL that cannot be parsed is refused where it is opened. */
function databaseOf({ store: { url } }: Config): string {
  if (!URL.canParse(url)) return url;
  const { hostname, port, pathname, searchParams } = new URL(url);
  return [searchParams.get('host') ?? hostname, port === '' ? '5432' : port, pathname].join('/');
}
