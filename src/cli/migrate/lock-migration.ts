import { join } from 'node:path';
import { lockDataFolder } from '../../cluster/data-folder-lock.ts';
import { StartError } from '../../cluster/exit.ts';
import type { Config } from '../../config/schema.ts';
import { ensureFolder, removeEmptyFolders } from '../../lib/files/durable-files.ts';
import { Failure } from '../failure.ts';

/**
 * Keeps a second migration of the same folder from running. Returns what ends that.
 *
 * @throws {Failure} if one is running
 */
export async function lockMigration({ dataDir }: Config): Promise<() => Promise<void>> {
  const folder = join(dataDir, 'migrating');
  const created = await ensureFolder(folder);
  try {
    const lock = await lockDataFolder(folder);
    return async () => {
      lock.release();
      await removeEmptyFolders([folder, ...created]);
    };
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    throw new Failure(`Another migration of ${dataDir} is running, so nothing was done.`, [
      'Wait for it, or end it; then run the command again.',
    ]);
  }
}
