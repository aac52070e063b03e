import { statSync } from 'node:fs';
import { join } from 'node:path';
import { copyLog, LogRotated, sealLog } from './commit-log.ts';
import { type Database, moveToLog } from '../env/database.ts';
import { type LogEnvironment, makeLog, recordedGeneration, recordGeneration } from '../env/log-file.ts';
import type { StoreView } from './store-view.ts';
import { DATA_FILE, logFolder } from '../env/store-files.ts';

/**
 * The log's file is used again and again, and at most about 100 MB large. It grows past that only while a process holds a
 * snapshot of it; then it is replaced at this size, so that the snapshot keeps one file and no more.
 */
export const ROTATE_BYTES = 192 * 1024 * 1024;

/** Bytes of the file of the current log. */
export function logBytes({ path, generation }: Database): number {
  return statSync(join(path, logFolder(generation), DATA_FILE), { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Lets commits go on in a new file, the next generation of the log, which begins with what is not folded. Every process
 * finds the seal where the old file ends, or when it commits, and moves on; after a crash at any point there is one log that
 * holds every commit (docs/decisions/0017-log-rotation.md). The old file stays until nobody has a snapshot of it.
 */
export async function rotateLog(database: Database, view: StoreView): Promise<void> {
  const { log: old, path } = database;
  const generation = database.generation + 1;
  let next: LogEnvironment | undefined;
  try {
    await old.transaction(() => {
      if (database.log !== old) return;
      view.catchUp();
      const { checkpointed, head } = view;
      next = makeLog(path, generation, (log) => copyLog(old, log, checkpointed, head));
      sealLog(old, head, generation);
    });
  } catch (error) {
    await next?.close();
    // Another process has done it.
    if (error instanceof LogRotated) return view.renew();
    throw error;
  }
  if (next === undefined) return;
  moveToLog(database, generation, next);
  await recordMove(database);
}

/** Writes down which log this process has been led to, where a crash has kept another one from it. */
export async function recordMove(database: Database): Promise<void> {
  if (recordedGeneration(database) >= database.generation) return;
  await database.root.transaction(() => recordGeneration(database, database.generation));
}
