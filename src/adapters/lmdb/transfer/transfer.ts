import { randomBytes } from 'node:crypto';
import { asBinary } from 'lmdb';
import { makeFolder } from '../../../lib/files/make-folder.ts';
import { MOVE_KEY, MOVES, type MoveState, parseMoveState } from '../../../model/move.ts';
import type { StoredEvent } from '../../../ports/store.ts';
import type {
  RecordChange,
  RecordName,
  StoredRecord,
  StoreTransfer,
  StreamExtent,
} from '../../../ports/store-transfer.ts';
import { DEFAULT_BOUNDS } from '../bounds.ts';
import { EventChunks } from '../engine/event-chunks.ts';
import { EventPage } from '../engine/event-page.ts';
import { type CheckedValue, encodeValue, textOfValue } from '../env/checked-value.ts';
import { storeErrorOf } from '../env/commit-failure.ts';
import { type Database, FORMAT_VERSION, formatText, openDatabase, tableKey } from '../env/database.ts';
import { LmdbStore } from '../store.ts';
import { ChangedPartitions } from './changed-partitions.ts';

/** The most records of one `scan`, and their characters before the last one. */
const SCANNED = 5_000;
const SCANNED_CHARS = 8_000_000;
/** How often the log is read, in milliseconds, so that it is not overwritten before. */
const POLL_MS = 100;

/** How `openLmdbTransfer` opens a store. */
export interface LmdbTransferOptions {
  /** Folder of the store; created if it is missing. */
  readonly path: string;
  readonly minFreeBytes: number;
}

/** Opens a whole store. Any number of processes may use a source meanwhile, and none a target. */
export async function openLmdbTransfer(options: LmdbTransferOptions): Promise<StoreTransfer> {
  await makeFolder(options.path);
  const database = await openDatabase(options.path);
  return new LmdbTransfer(database, new LmdbStore(database, options));
}

/**
 * A whole store in a folder. A source is read as every other process reads it, and its log tells what has changed. A
 * target is written into the base table itself, because events of the log begin at 1, and nothing else has it open.
 */
class LmdbTransfer implements StoreTransfer {
  readonly label: string;
  readonly #database: Database;
  readonly #store: LmdbStore;
  readonly #chunks: EventChunks;
  readonly #changed = new ChangedPartitions();
  readonly #polling: NodeJS.Timeout;
  #epoch: string;

  constructor(database: Database, store: LmdbStore) {
    this.label = `the folder ${database.path}`;
    this.#database = database;
    this.#store = store;
    this.#epoch = store.epoch;
    this.#chunks = new EventChunks({ eventChunks: database.eventChunks, bounds: DEFAULT_BOUNDS });
    store.onWrites((partition) => this.#changed.add(partition));
    this.#polling = setInterval(() => store.poll(), POLL_MS);
  }

  get epoch(): string {
    return this.#epoch;
  }

  async scan(after: RecordName | null): Promise<StoredRecord[]> {
    if (after === null) await this.#store.checkpoint();
    const from = after === null ? undefined : tableKey(after.partition, after.key);
    this.#database.root.resetReadTxn();
    const records: StoredRecord[] = [];
    let chars = 0;
    for (const { key: name, value } of this.#database.table.getRange({
      ...(from === undefined ? {} : { start: from }),
      limit: SCANNED,
    })) {
      if (name === from) continue;
      const space = name.indexOf(' ');
      const record = { partition: name.slice(0, space), key: name.slice(space + 1), value: textOfValue(name, value) };
      records.push(record);
      chars += record.value.length;
      if (chars > SCANNED_CHARS) break;
    }
    this.#store.releaseSnapshot();
    const shown = records.filter(({ partition }) => partition !== MOVES);
    return shown.length === 0 && records.length > 0 ? this.scan(records.at(-1) ?? null) : shown;
  }

  get(partition: string, key: string): Promise<string | undefined> {
    return this.#store.get(partition, key);
  }

  async records(partition: string, after: RecordName | null): Promise<StoredRecord[]> {
    if (partition === MOVES) return [];
    const entries = await this.#store.range(partition, { after: after?.key, limit: SCANNED });
    this.#store.releaseSnapshot();
    return entries.map(({ key, value }) => ({ partition, key, value }));
  }

  async changes(): Promise<ReadonlySet<string> | null> {
    this.#store.poll();
    return this.#changed.take();
  }

  async streams(): Promise<StreamExtent[]> {
    await this.#store.checkpoint();
    this.#database.root.resetReadTxn();
    const extents: StreamExtent[] = [];
    for (const stream of this.#chunks.streams()) {
      extents.push({ stream, oldest: this.#chunks.first(stream) ?? 1, last: this.#chunks.last(stream) });
    }
    this.#store.releaseSnapshot();
    return extents;
  }

  async events(stream: string, since: number, limit: number, maxChars: number): Promise<StoredEvent[]> {
    this.#database.root.resetReadTxn();
    const page = new EventPage(limit, maxChars);
    // Not from the memory of the store, which does not know what is appended here.
    this.#chunks.read(stream, since, Infinity, page);
    this.#store.releaseSnapshot();
    return page.events;
  }

  async state(): Promise<MoveState | undefined> {
    return parseMoveState(await this.#store.get(MOVES, MOVE_KEY));
  }

  setState(state: MoveState): Promise<void> {
    return this.#store.transact(async (tx) => tx.put(MOVES, MOVE_KEY, JSON.stringify(state)));
  }

  async resume(renew: boolean): Promise<void> {
    // The epoch first: a store that takes writes again with the old one would reuse positions of the other store.
    if (renew) await this.#setEpoch(randomBytes(8).toString('hex'));
    await this.#store.transact(async (tx) => tx.delete(MOVES, MOVE_KEY));
  }

  write(changes: readonly RecordChange[]): Promise<void> {
    return this.#transact(({ table }) => {
      for (const { partition, key, value } of changes) {
        const name = tableKey(partition, key);
        if (value === undefined) void table.remove(name);
        else void table.put(name, asBinary(encodeValue(name, Buffer.from(value))) as unknown as CheckedValue);
      }
    });
  }

  append(stream: string, events: readonly StoredEvent[]): Promise<void> {
    const [first] = events;
    if (first === undefined) return Promise.resolve();
    const encoded = events.map(({ text }) => {
      const bytes = Buffer.from(text);
      return { bytes, start: 0, end: bytes.length, position: 0 };
    });
    return this.#transact(() => this.#chunks.append(stream, first.seq, encoded));
  }

  removeStream(stream: string): Promise<void> {
    return this.#transact(() => this.#chunks.remove(stream));
  }

  async finish(epoch: string): Promise<void> {
    // The state is in the log, which has precedence over the base table.
    await this.#setEpoch(epoch);
    await this.#store.transact(async (tx) => tx.delete(MOVES, MOVE_KEY));
    await this.#store.checkpoint();
  }

  async close(): Promise<void> {
    clearInterval(this.#polling);
    await this.#store.close();
  }

  async #setEpoch(epoch: string): Promise<void> {
    await this.#transact(({ meta }) => void meta.put('format', formatText({ version: FORMAT_VERSION, epoch })));
    this.#epoch = epoch;
  }

  async #transact(action: (database: Database) => void): Promise<void> {
    try {
      await this.#database.root.transaction(() => action(this.#database));
    } catch (error) {
      throw storeErrorOf(error, this.#database.path);
    }
  }
}
