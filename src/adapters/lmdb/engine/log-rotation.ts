import { statSync } from 'node:fs';
import { join } from 'node:path';
import { copyLog, LogRotated, sealLog } from './commit-log.ts';
import { type Database, replaceLog } from '../env/database.ts';
import { type LogFile, makeLog, recordedGeneration, recordGeneration } from '../env/log-file.ts';
import type { StoreView } from './store-view.ts';
import { DATA_FILE, logFolder } from '../env/store-files.ts';

/** Size of the file of the current log, in bytes. */
export function logBytes({ path, generation }: Database): number {
  return statSync(join(path, logFolder(generation), DATA_FILE), { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Continues the log in a new file, its next generation, which begins with what is not in the base table. Every process
 * finds the seal where the old file ends, or when it commits, and switches to the new one. After a crash at any point
 * one log has every commit (docs/decisions/0017-log-rotation.md). The old file stays until no process has a snapshot of
 * it.
 */
export async function rotateLog(database: Database, view: StoreView): Promise<void> {
  const { log: old, path } = database;
  const generation = database.generation + 1;
  let next: LogFile | undefined;
  try {
    await old.transaction(() => {
      if (database.log !== old) return;
      view.catchUp();
      const { checkpointed, head } = view;
      next = makeLog(path, generation, (log) => copyLog(old, log, checkpointed, head), {
        ringRecords: old.ringRecords,
      });
      sealLog(old, head, generation);
    });
  } catch (error) {
    await next?.close();
    // Another process has rotated the log.
    if (error instanceof LogRotated) return view.renew();
    throw error;
  }
  if (next === undefined) return;
  await Promise.all([replaceLog(database, generation, next), recordRotation(database)]);
}

/**
 * Records the generation that this process uses, if a crash has kept the process that rotated the log from doing so.
 */
export async function recordRotation(database: Database): Promise<void> {
  if (recordedGeneration(database) >= database.generation) return;
  await database.root.transaction(() => recordGeneration(database, database.generation));
}
