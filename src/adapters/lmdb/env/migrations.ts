import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Database as Table, RootDatabase } from 'lmdb';
import { FRAME_BYTES } from '../engine/batch.ts';
import { appendToLog, endOf, hasRoom } from '../engine/commit-log.ts';
import { type LogEnvironment, makeLog, openLog, recordGeneration } from './log-file.ts';
import { logFolder } from './store-files.ts';

/** What a migration works on: the tree is open, no log is. */
export interface Migrated {
  readonly path: string;
  readonly root: RootDatabase;
  readonly meta: Table<string, string>;
}

/** A migration that is ready to run. */
export interface Migration {
  /** Does the work, inside a write transaction of the tree; may be done once more from the start. */
  run(): void;
  /** Closes and removes what is not needed any more, after that transaction, whether it has called `run` or not. */
  done(): Promise<void>;
}

/** `migrations[n]` brings a database of format n to the current one; called outside of any transaction. */
export const migrations: Readonly<Record<number, (database: Migrated) => Migration>> = { 1: fromTable, 2: fromPlainLog };

/** The log of formats 1 and 2 was a ring of pieces of this size too. */
const RING_PIECES = 32_768;
const PIECE_BYTES = 2_000;
/** Format 1 wrote position and length before a commit, and no mark into the pieces. */
const FRAME_BYTES_1 = 12;
/** Format 2 wrote the length before a commit, and the position as a double before every piece. */
const FRAME_BYTES_2 = 4;
const MARK_BYTES_2 = 8;
/** The log that a migration writes. */
const GENERATION = 1;

/** Format 1 had the log as a table beside the tree. */
function fromTable(database: Migrated): Migration {
  const old = database.root.openDB<Buffer, number>('log', { encoding: 'binary', keyEncoding: 'uint32' });
  let log: LogEnvironment | undefined;
  return {
    run() {
      const checkpointed = foldedOf(database);
      log = rewrite(database, checkpointed, batchesOf1(old, checkpointed));
      for (const key of [...old.getKeys()]) void old.remove(key);
    },
    done: async () => log?.close(),
  };
}

/** Format 2 had the log as the environment that is generation 0 now, without checksums. */
function fromPlainLog(database: Migrated): Migration {
  const old = openLog(database.path, 0);
  let log: LogEnvironment | undefined;
  return {
    run() {
      const checkpointed = foldedOf(database);
      log = rewrite(database, checkpointed, batchesOf2(old, checkpointed));
    },
    async done() {
      await log?.close();
      await old.close();
      rmSync(join(database.path, logFolder(0)), { recursive: true, force: true });
    },
  };
}

function foldedOf({ meta }: Migrated): number {
  return Number(meta.get('folded') ?? 0);
}

/** Writes commits, which begin with room for a frame of today, as the log that goes on from `folded`. */
function rewrite(database: Migrated, checkpointed: number, batches: readonly Buffer[]): LogEnvironment {
  const log = makeLog(database.path, GENERATION, (made) => {
    let position = checkpointed;
    for (const bytes of batches) {
      const end = endOf(position, bytes.byteLength);
      if (!hasRoom(checkpointed, end)) throw new Error('The log of the older format is too full to be moved: start and stop the version that wrote it once without load, then this one.');
      appendToLog(made, position, bytes);
      position = end;
    }
  });
  recordGeneration(database, GENERATION);
  return log;
}

function batchesOf1(old: Table<Buffer, number>, from: number): Buffer[] {
  const batches: Buffer[] = [];
  for (let start = from; ; ) {
    const first = old.get(start % RING_PIECES);
    if (first === undefined || first.readDoubleLE(0) !== start) return batches;
    const byteLength = first.readUInt32LE(8);
    const bytes = Buffer.alloc(byteLength);
    const pieces = Math.ceil(byteLength / PIECE_BYTES);
    for (let i = 0; i < pieces; i++) old.get((start + i) % RING_PIECES)?.copy(bytes, i * PIECE_BYTES);
    batches.push(bytes.subarray(FRAME_BYTES_1 - FRAME_BYTES));
    start += pieces;
  }
}

function batchesOf2(old: LogEnvironment, from: number): Buffer[] {
  const room = PIECE_BYTES - MARK_BYTES_2;
  const batches: Buffer[] = [];
  for (let start = from; ; ) {
    const first = old.get(start % RING_PIECES);
    if (first === undefined || first.readDoubleLE(0) !== start) return batches;
    const byteLength = first.readUInt32LE(MARK_BYTES_2);
    const grown = FRAME_BYTES - FRAME_BYTES_2;
    const bytes = Buffer.alloc(grown + byteLength);
    const pieces = Math.ceil(byteLength / room);
    for (let i = 0; i < pieces; i++) old.get((start + i) % RING_PIECES)?.copy(bytes, grown + i * room, MARK_BYTES_2);
    batches.push(bytes);
    start += pieces;
  }
}
