import { randomUUID } from 'node:crypto';
import { CollabError } from '../../src/model/errors.ts';
import type { Entry, RangeOptions, RenderEvent, StoredEvent } from '../../src/ports/store.ts';

/** A read of a transaction, with the version of the key at that time. */
export interface GuardedRead {
  readonly partition: string;
  readonly key: string;
  readonly version: number;
}

export type Change = (current: string | undefined) => string | undefined;

/** A buffered write; a put or delete is a change that ignores the current value. */
export interface Operation {
  readonly partition: string;
  readonly key: string;
  readonly change: Change;
}

/** An event to append to a stream; `render` is null for the end of the stream. */
export interface Emission {
  readonly stream: string;
  readonly render: RenderEvent | null;
}

/** Gets the records whose values a commit has changed. */
type CommitListener = (changed: readonly { readonly partition: string; readonly key: string }[]) => void;

interface Log {
  /** Position of the first event kept. */
  first: number;
  readonly texts: string[];
}

/**
 * The data that several `MemoryStore`s share, as processes share a database on disk. Everything here is synchronous.
 */
export class MemoryDatabase {
  readonly epoch = randomUUID();
  /** While true, commits are refused as on a full disk. */
  full = false;
  /** While true, commits are refused as by a disk that fails. */
  failing = false;
  readonly #partitions = new Map<string, Map<string, string>>();
  readonly #keyVersions = new Map<string, number>();
  readonly #partitionVersions = new Map<string, number>();
  readonly #logs = new Map<string, Log>();
  readonly #ended = new Set<string>();
  readonly #listeners = new Set<CommitListener>();
  #position = 0;

  /** Number of commits so far. */
  get position(): number {
    return this.#position;
  }

  get(partition: string, key: string): string | undefined {
    checkName(partition, key);
    return this.#partitions.get(partition)?.get(key);
  }

  range(partition: string, { prefix = '', after, reverse = false, limit = Infinity }: RangeOptions): Entry[] {
    checkName(partition, prefix);
    const isPast = (key: string): boolean => after === undefined || (reverse ? key < after : key > after);
    const records = [...(this.#partitions.get(partition) ?? [])].filter(
      ([key]) => key.startsWith(prefix) && isPast(key),
    );
    const direction = reverse ? -1 : 1;
    records.sort(([a], [b]) => (a < b ? -direction : direction));
    return records.slice(0, limit).map(([key, value]) => ({ key, value }));
  }

  /** The names of partitions that start with `prefix`, in order. */
  partitions(prefix: string): string[] {
    return [...this.#partitions.keys()].filter((name) => name.startsWith(prefix)).sort();
  }

  /** Position of the commit that last wrote a key; 0 when none did. */
  versionOf(partition: string, key: string): number {
    return this.#keyVersions.get(nameOf(partition, key)) ?? 0;
  }

  /** Position of the commit that last wrote in a partition; 0 when none did. */
  partitionVersion(partition: string): number {
    return this.#partitionVersions.get(partition) ?? 0;
  }

  /**
   * Applies everything and returns true, or applies nothing and returns false if a read is stale. Throws what a change
   * or a render throws; nothing is applied then.
   */
  commit(reads: readonly GuardedRead[], operations: readonly Operation[], emissions: readonly Emission[]): boolean {
    if (reads.some(({ partition, key, version }) => this.versionOf(partition, key) !== version)) return false;
    const written = this.#stageRecords(operations);
    const events = this.#stageEvents(emissions);
    const changed = [...written.values()].filter(({ partition, key, value }) => value !== this.get(partition, key));
    this.#position++;
    for (const { partition, key, value } of written.values()) this.#write(partition, key, value);
    for (const [stream, texts] of events) this.#logOf(stream).texts.push(...texts);
    for (const { stream, render } of emissions) if (render === null) this.#end(stream);
    for (const listener of this.#listeners) listener(changed);
    return true;
  }

  lastSeq(stream: string): number {
    const log = this.#logs.get(stream);
    return log === undefined ? 0 : log.first + log.texts.length - 1;
  }

  oldestSeq(stream: string): number {
    return this.#logs.get(stream)?.first ?? 1;
  }

  events(stream: string, since: number, limit: number, maxChars = Infinity): StoredEvent[] {
    const log = this.#logs.get(stream);
    if (log === undefined) return [];
    const from = Math.max(0, since + 1 - log.first);
    let chars = 0;
    const found = log.texts.slice(from, from + limit).map((text, index) => ({ seq: log.first + from + index, text }));
    return found.filter(({ text }, index) => (chars += text.length) <= maxChars || index === 0);
  }

  /** The streams that have events. */
  streams(): string[] {
    return [...this.#logs.keys()];
  }

  trimEvents(stream: string, seq: number): void {
    const log = this.#logs.get(stream);
    if (log === undefined) return;
    const gone = Math.min(Math.max(0, seq - log.first + 1), log.texts.length - 1);
    log.texts.splice(0, gone);
    log.first += gone;
  }

  /** The streams that have ended. */
  ended(): Iterable<string> {
    return this.#ended;
  }

  /** Calls `listener` after each commit. Returns a function that unsubscribes it. */
  onCommit(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #stageRecords(
    operations: readonly Operation[],
  ): Map<string, { partition: string; key: string; value: string | undefined }> {
    const staged = new Map<string, { partition: string; key: string; value: string | undefined }>();
    for (const { partition, key, change } of operations) {
      const name = nameOf(partition, key);
      const earlier = staged.get(name);
      staged.set(name, {
        partition,
        key,
        value: change(earlier === undefined ? this.get(partition, key) : earlier.value),
      });
    }
    return staged;
  }

  #stageEvents(emissions: readonly Emission[]): Map<string, string[]> {
    const staged = new Map<string, string[]>();
    const ended = new Set(this.#ended);
    for (const { stream, render } of emissions) {
      if (render === null) ended.add(stream);
      else if (ended.has(stream)) throw new CollabError('environment_not_found', 'The environment has been deleted');
      else {
        const texts = staged.get(stream) ?? [];
        texts.push(render(this.lastSeq(stream) + texts.length + 1));
        staged.set(stream, texts);
      }
    }
    return staged;
  }

  #end(stream: string): void {
    this.#logs.delete(stream);
    this.#ended.add(stream);
  }

  #write(partition: string, key: string, value: string | undefined): void {
    let records = this.#partitions.get(partition);
    if (records === undefined) this.#partitions.set(partition, (records = new Map<string, string>()));
    if (value === undefined) records.delete(key);
    else records.set(key, value);
    if (records.size === 0) this.#partitions.delete(partition);
    this.#keyVersions.set(nameOf(partition, key), this.#position);
    this.#partitionVersions.set(partition, this.#position);
  }

  #logOf(stream: string): Log {
    let log = this.#logs.get(stream);
    if (log === undefined) this.#logs.set(stream, (log = { first: 1, texts: [] }));
    return log;
  }
}

const nameOf = (partition: string, key: string): string => `${partition} ${key}`;

/** Throws if a name breaks the rules of the port. */
function checkName(partition: string, key: string): void {
  const name = partition + key;
  if (/^[\x21-\x7e]+$/.test(name) && name.length <= 1_900) return;
  throw new TypeError(`Names must be printable ASCII of at most 1900 bytes: ${JSON.stringify(nameOf(partition, key))}`);
}
