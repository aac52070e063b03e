import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { diskRefusalOf } from '../model/disk-refusal.ts';

const FILE = 'reserve';
/** A start writes its lock, sometimes a second one, and its address: a block of the disk each. */
const RESERVE_BYTES = 64 * 1024;
const BLOCK_BYTES = 4 * 1024;

/**
 * Runs `work`, which writes small files in a data folder. If the disk is full, gives up the reserve of the folder and
 * runs it once more. Rejects as `work` does.
 */
export async function withReserve<T>(folder: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (diskRefusalOf(error)?.code !== 'storage_full') throw error;
    rmSync(join(folder, FILE), { force: true });
    return work();
  }
}

/**
 * Reserves space in a data folder, so that a server can start there on a full disk and serve reads: 64 KB, or as much
 * as there is. Never throws.
 */
export function reserveSpace(folder: string): void {
  try {
    const file = openSync(join(folder, FILE), 'a', 0o600);
    try {
      // Random, so that no file system stores it without taking space for it.
      for (let { size } = fstatSync(file); size < RESERVE_BYTES; size += BLOCK_BYTES)
        writeSync(file, randomBytes(BLOCK_BYTES));
    } finally {
      closeSync(file);
    }
  } catch {
    // The disk is full, or refuses: the store reports that.
  }
}
