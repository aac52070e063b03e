import type { RecordChange, StoredRecord, StoreTransfer } from '../../ports/store-transfer.ts';

/** Records and characters of one write. */
const BATCH_RECORDS = 1_000;
const BATCH_CHARS = 4_000_000;

/** Calls while records are compared. */
export interface RecordHooks {
  /** Called with each record of the source; `isNew` if it was written. */
  record(record: StoredRecord, isNew: boolean): void;
  /** Called after each write and each page. Throws to end the copy. */
  step(): void;
}

/** What comparing has found. */
export interface RecordPass {
  /** Records of the source. */
  readonly records: number;
  /** Records that the target had before. */
  readonly had: number;
  /** Records that were written or deleted. */
  readonly written: number;
  /** The partitions of these. */
  readonly partitions: ReadonlySet<string>;
}

/**
 * Makes records of a target equal to those of the source: reads both in one order, and writes what differs. So a copy
 * that was interrupted goes on where it ended, and one that is complete is a verification that writes nothing.
 *
 * @param partitions those to be compared; null for all
 */
export async function copyRecords(
  source: StoreTransfer,
  target: StoreTransfer,
  partitions: ReadonlySet<string> | null,
  hooks: RecordHooks,
): Promise<RecordPass> {
  const writer = new RecordWriter(target, hooks);
  let records = 0;
  let had = 0;
  const compare = async (from: Cursor, to: Cursor): Promise<void> => {
    for (;;) {
      if (from.isRead && (await from.load())) hooks.step();
      if (to.isRead) await to.load();
      const { current } = from;
      const existing = to.current;
      if (current === undefined && existing === undefined) return;
      const order = current === undefined ? 1 : existing === undefined ? -1 : compareNames(current, existing);
      if (current !== undefined && order <= 0) {
        const isNew = order < 0 || current.value !== existing?.value;
        if (isNew) writer.add(current);
        hooks.record(current, isNew);
        records++;
        from.next();
      } else if (existing !== undefined) writer.add({ ...existing, value: undefined });
      if (order >= 0) {
        had++;
        to.next();
      }
      if (writer.isFull) await writer.flush();
    }
  };
  if (partitions === null) {
    await compare(new Cursor((after) => source.scan(after)), new Cursor((after) => target.scan(after)));
  } else {
    for (const partition of [...partitions].sort())
      await compare(
        new Cursor((after) => source.records(partition, after)),
        new Cursor((after) => target.records(partition, after)),
      );
  }
  await writer.flush();
  return { records, had, written: writer.written, partitions: writer.partitions };
}

/** Reads records page by page. */
class Cursor {
  readonly #read: (after: StoredRecord | null) => Promise<StoredRecord[]>;
  #page: readonly StoredRecord[] = [];
  #at = 0;
  #last: StoredRecord | null = null;
  #ended = false;

  constructor(read: (after: StoredRecord | null) => Promise<StoredRecord[]>) {
    this.#read = read;
  }

  /** The record at the cursor; undefined at the end. */
  get current(): StoredRecord | undefined {
    return this.#page[this.#at];
  }

  /** Whether the next page must be loaded. */
  get isRead(): boolean {
    return !this.#ended && this.#at >= this.#page.length;
  }

  next(): void {
    this.#at++;
  }

  /** Loads the next page. Returns whether there is one. */
  async load(): Promise<boolean> {
    this.#page = await this.#read(this.#last);
    this.#at = 0;
    this.#last = this.#page.at(-1) ?? this.#last;
    this.#ended = this.#page.length === 0;
    return !this.#ended;
  }
}

/** Writes changes in batches. */
class RecordWriter {
  readonly partitions = new Set<string>();
  written = 0;
  readonly #target: StoreTransfer;
  readonly #hooks: RecordHooks;
  #batch: RecordChange[] = [];
  #chars = 0;

  constructor(target: StoreTransfer, hooks: RecordHooks) {
    this.#target = target;
    this.#hooks = hooks;
  }

  get isFull(): boolean {
    return this.#batch.length >= BATCH_RECORDS || this.#chars >= BATCH_CHARS;
  }

  add(change: RecordChange): void {
    this.#batch.push(change);
    this.#chars += change.value?.length ?? 0;
    this.partitions.add(change.partition);
  }

  async flush(): Promise<void> {
    if (this.#batch.length === 0) return;
    await this.#target.write(this.#batch);
    this.written += this.#batch.length;
    this.#batch = [];
    this.#chars = 0;
    this.#hooks.step();
  }
}

/** The order of records by partition and key, whose characters are ASCII. */
function compareNames(one: StoredRecord, other: StoredRecord): number {
  if (one.partition !== other.partition) return one.partition < other.partition ? -1 : 1;
  return one.key === other.key ? 0 : one.key < other.key ? -1 : 1;
}
