import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Database as Table, RootDatabase } from 'lmdb';
import { FRAME_BYTES } from '../engine/batch.ts';
import { appendToLog, endOf, hasSpace } from '../engine/commit-log.ts';
import { encodeNumber } from './checked-value.ts';
import { UNCHECKED } from './checksum-upgrade.ts';
import { type LogFile, makeLog, openLog } from './log-file.ts';
import { logFolder } from './store-files.ts';

/** A database to migrate: the base LMDB environment is open, no log is. */
export interface MigrationTarget {
  readonly path: string;
  readonly root: RootDatabase;
  readonly meta: Table<string, string>;
}

/** A migration that is ready to run. */
export interface Migration {
  /** Migrates, inside a write transaction of the base LMDB environment; may be called again from the start. */
  run(): void;
  /** Closes and removes what is no longer needed. Called after that transaction, whether it has called `run` or not. */
  done(): Promise<void>;
}

/** `migrations[n]` migrates a database of format n to the current one; called outside of any transaction. */
export const migrations: Readonly<Record<number, (database: MigrationTarget) => Migration>> = {
  1: fromTable,
  2: fromPlainLog,
  3: fromPlainTable,
};

/** In formats 1 and 2 the log was a ring of records of this size too. */
const RING_RECORDS = 32_768;
const RECORD_BYTES = 2_000;
/** Format 1 had position and length before a batch, and no header in the records. */
const FRAME_BYTES_1 = 12;
/** Format 2 had the length before a batch, and the position as a double before every record. */
const FRAME_BYTES_2 = 4;
const HEADER_BYTES_2 = 8;
/** The generation of the log that a migration writes. */
const GENERATION = 1;

/** Format 1 had the log in a table of the base LMDB environment. */
function fromTable(database: MigrationTarget): Migration {
  const old = database.root.openDB<Buffer, number>('log', { encoding: 'binary', keyEncoding: 'uint32' });
  let log: LogFile | undefined;
  return {
    run() {
      const checkpointed = checkpointOf(database);
      log = rewrite(database, checkpointed, batchesOf1(old, checkpointed));
      checkNumbers(database);
      for (const key of [...old.getKeys()]) void old.remove(key);
    },
    done: async () => log?.close(),
  };
}

/** Format 2 had the log without checksums, in the LMDB environment that is generation 0 now. */
function fromPlainLog(database: MigrationTarget): Migration {
  const old = openLog(database.path, 0);
  let log: LogFile | undefined;
  return {
    run() {
      const checkpointed = checkpointOf(database);
      log = rewrite(database, checkpointed, batchesOf2(old, checkpointed));
      checkNumbers(database);
    },
    async done() {
      await log?.close();
      await old.close();
      rmSync(join(database.path, logFolder(0)), { recursive: true, force: true });
    },
  };
}

/** Format 3 had no checksums in the base table. Its records get them in steps (checksum-upgrade.ts). */
function fromPlainTable(database: MigrationTarget): Migration {
  return { run: () => checkNumbers(database), done: () => Promise.resolve() };
}

/** Adds checksums to the numbers beside the base table, and records that its records may have none. */
function checkNumbers({ meta }: MigrationTarget): void {
  for (const key of ['folded', 'log']) {
    const value = meta.get(key);
    if (value !== undefined) void meta.put(key, encodeNumber(key, Number(value)));
  }
  void meta.put(UNCHECKED, '');
}

function checkpointOf({ meta }: MigrationTarget): number {
  return Number(meta.get('folded') ?? 0);
}

/**
 * Writes batches, which begin with space for a frame of the current format, to a log that continues from
 * `checkpointed`.
 */
function rewrite(database: MigrationTarget, checkpointed: number, batches: readonly Buffer[]): LogFile {
  const log = makeLog(database.path, GENERATION, (created) => {
    let position = checkpointed;
    for (const bytes of batches) {
      const end = endOf(position, bytes.byteLength);
      if (!hasSpace(created, checkpointed, end))
        throw new Error(
          'The log of the older format is too full to be migrated: start and stop the version that wrote it ' +
            'once without load, then this one.',
        );
      appendToLog(created, position, bytes);
      position = end;
    }
  });
  void database.meta.put('log', String(GENERATION));
  return log;
}

function batchesOf1(old: Table<Buffer, number>, from: number): Buffer[] {
  const batches: Buffer[] = [];
  for (let start = from; ;) {
    const first = old.get(start % RING_RECORDS);
    if (first === undefined || first.readDoubleLE(0) !== start) return batches;
    const byteLength = first.readUInt32LE(8);
    const bytes = Buffer.alloc(byteLength);
    const records = Math.ceil(byteLength / RECORD_BYTES);
    for (let i = 0; i < records; i++) old.get((start + i) % RING_RECORDS)?.copy(bytes, i * RECORD_BYTES);
    batches.push(bytes.subarray(FRAME_BYTES_1 - FRAME_BYTES));
    start += records;
  }
}

function batchesOf2(old: LogFile, from: number): Buffer[] {
  const payload = RECORD_BYTES - HEADER_BYTES_2;
  const batches: Buffer[] = [];
  for (let start = from; ;) {
    const first = old.get(start % RING_RECORDS);
    if (first === undefined || first.readDoubleLE(0) !== start) return batches;
    const byteLength = first.readUInt32LE(HEADER_BYTES_2);
    const grown = FRAME_BYTES - FRAME_BYTES_2;
    const bytes = Buffer.alloc(grown + byteLength);
    const records = Math.ceil(byteLength / payload);
    for (let i = 0; i < records; i++)
      old.get((start + i) % RING_RECORDS)?.copy(bytes, grown + i * payload, HEADER_BYTES_2);
    batches.push(bytes);
    start += records;
  }
}
