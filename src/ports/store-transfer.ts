import type { MoveState } from '../model/move.ts';
import type { StoredEvent } from './store.ts';

/** The name of a record in a whole store. */
export interface RecordName {
  readonly partition: string;
  readonly key: string;
}

/** A record of a whole store. */
export interface StoredRecord extends RecordName {
  readonly value: string;
}

/** A record to be written; without a value to be deleted. */
export interface RecordChange extends RecordName {
  readonly value: string | undefined;
}

/** The events that a stream has; `oldest` is at most `last`. */
export interface StreamExtent {
  readonly stream: string;
  /** The position of the oldest event that is kept. */
  readonly oldest: number;
  readonly last: number;
}

/**
 * A store as a whole, for `collab migrate`: every adapter of `Store` has one, which reads everything while servers use
 * the store, and writes everything into an empty store. `Store` itself neither lists streams nor gives events their
 * positions. Reads never show the record of the move (`model/move.ts`). `test/conformance/store-transfer.ts` asserts
 * this contract for every adapter.
 */
export interface StoreTransfer {
  /** Names the store for operators, without a password. */
  readonly label: string;
  /** As `Store.epoch`; that of a target until `finish`. */
  readonly epoch: string;

  /**
   * Returns the records after a name, in the order of partition and key (by byte): at least one, and so many that a few
   * hundred calls read a million; none at the end. Commits that are made between the calls may show or not:
   * `changes` names their partitions.
   *
   * @param after null for the beginning
   */
  scan(after: RecordName | null): Promise<StoredRecord[]>;
  /** Returns the value of a record, as of now; undefined if there is none. */
  get(partition: string, key: string): Promise<string | undefined>;
  /** As `scan`, of one partition, as of now: every commit that was made before the call shows. */
  records(partition: string, after: RecordName | null): Promise<StoredRecord[]>;
  /**
   * Returns the partitions that may have been written to since the call before; null if that is not known. The first
   * call returns null, and must be made before a first `scan`.
   */
  changes(): Promise<ReadonlySet<string> | null>;
  /** Returns the streams that have events and have not ended, in no particular order. */
  streams(): Promise<StreamExtent[]>;
  /** As `Store.events`. */
  events(stream: string, since: number, limit: number, maxChars: number): Promise<StoredEvent[]>;

  /** Returns what the store says of a move; undefined if nothing. */
  state(): Promise<MoveState | undefined>;
  /**
   * Sets that, durably. Once a store has a state, every commit of any process is refused with `store_moving`, also of
   * a process that had opened the store before: no commit is confirmed after this has resolved.
   */
  setState(state: MoveState): Promise<void>;
  /**
   * Removes the state of a source, so that it takes writes again.
   *
   * @param renew whether it gets a new epoch, so that clients of the store that it was moved to reload
   */
  resume(renew: boolean): Promise<void>;

  /** Writes records of a target, durably. */
  write(changes: readonly RecordChange[]): Promise<void>;
  /**
   * Appends consecutive events to a stream of a target, durably. A stream begins with any position.
   */
  append(stream: string, events: readonly StoredEvent[]): Promise<void>;
  /** Removes a stream of a target with its events: it may begin anew, unlike one that has ended. */
  removeStream(stream: string): Promise<void>;
  /** Gives a target the epoch of the source and removes its state, in one durable step: it can be used from now on. */
  finish(epoch: string): Promise<void>;

  close(): Promise<void>;
}
