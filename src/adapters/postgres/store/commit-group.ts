import { CollabError } from '../../../model/errors.ts';
import type { Growth } from '../../../ports/store.ts';
import type { GuardedRead, Operation, PostgresTransaction } from './transaction.ts';
import type { AppendedEvent } from './write-sql.ts';

/**
 * The result of a transaction: committed; to be run again; or refused, because one of its updates threw or the commit
 * failed.
 */
export type CommitOutcome =
  | { readonly kind: 'committed' }
  | {
      readonly kind: 'conflict';
      /** A read that the database has another version of; absent if a transaction of the same group wrote to one. */
      readonly stale?: GuardedRead;
    }
  | { readonly kind: 'failed'; readonly error: unknown };

/** What the database has under the locks of a group. */
export interface Current {
  /** The version of a guarded or updated record by its name (`recordName`); null if there is none. */
  version(name: string): string | null;
  /** The value of a record that is updated, or whose value may suffice; undefined if there is none. */
  value(name: string): string | undefined;
  /** The position of the last event of a stream, null if it has ended. */
  lastSeq(stream: string): number | null;
}

/** The most characters of the values and events of one transaction. */
export const LARGEST_CHARS = 24_000_000;
/** A group with this many characters takes no further transaction. */
const GROUP_CHARS = 16_000_000;

/** Per key, the value that an earlier operation wrote, null for a deletion. */
type Writes = Map<string, Map<string, string | null>>;

interface Replaced {
  readonly partition: string;
  readonly key: string;
  /** What the group had before: undefined if nothing. */
  readonly value: string | null | undefined;
}

/** The writes and events of the transactions in one commit, on top of what the database has. */
export class CommitGroup {
  /** Per partition the changed values, null for a deletion. */
  readonly writes: Writes = new Map();
  readonly events: AppendedEvent[] = [];
  readonly #current: Current;
  /** The position of the last event, null for an end, of the streams that have grown. */
  readonly #growth = new Map<string, number | null>();
  #chars = 0;

  constructor(current: Current) {
    this.#current = current;
  }

  /** Whether there is anything to write. */
  get isEmpty(): boolean {
    return this.writes.size === 0 && this.#growth.size === 0;
  }

  /** The streams that grow or end by this commit. */
  get growth(): Growth {
    return this.#growth;
  }

  /**
   * Validates a transaction and adds all of its writes and events, or none. Returns null if the group has no space for
   * it: it must wait for the next one, and so must those after it.
   */
  add(transaction: PostgresTransaction): CommitOutcome | null {
    if (this.#chars > GROUP_CHARS) return null;
    for (const read of transaction.reads) {
      if (this.writes.get(read.partition)?.has(read.key) === true) return { kind: 'conflict' };
      if (this.#isStale(read)) return { kind: 'conflict', stale: read };
    }
    // Against what is committed: the transactions before it in the group are not yet.
    for (const read of transaction.assumptions) {
      if (this.#isStale(read) && read.suffices?.(this.#current.value(read.name)) !== true)
        return { kind: 'conflict', stale: read };
    }
    const charsBefore = this.#chars;
    const replaced: Replaced[] = [];
    try {
      for (const operation of transaction.operations) replaced.push(this.#write(operation));
      const { events, growth } = this.#append(transaction);
      const chars = this.#chars - charsBefore;
      if (chars > LARGEST_CHARS) throw tooLarge(chars);
      for (const event of events) this.events.push(event);
      for (const [stream, seq] of growth) this.#growth.set(stream, seq);
      return { kind: 'committed' };
    } catch (error) {
      this.#restore(replaced);
      this.#chars = charsBefore;
      return { kind: 'failed', error };
    }
  }

  #isStale({ name, version }: GuardedRead): boolean {
    return this.#current.version(name) !== version;
  }

  #write({ partition, key, name, value, change }: Operation): Replaced {
    let values = this.writes.get(partition);
    const earlier = values?.get(key);
    const next =
      change === undefined ? value : change(earlier === undefined ? this.#current.value(name) : (earlier ?? undefined));
    if (values === undefined) this.writes.set(partition, (values = new Map()));
    values.set(key, next ?? null);
    this.#chars += partition.length + key.length + (next?.length ?? 0);
    return { partition, key, value: earlier };
  }

  /** Takes back the operations of a transaction that has failed, of which these are the first. */
  #restore(replaced: readonly Replaced[]): void {
    for (const { partition, key, value } of replaced.toReversed()) {
      const values = this.writes.get(partition);
      if (value !== undefined) values?.set(key, value);
      else values?.delete(key);
      if (values?.size === 0) this.writes.delete(partition);
    }
  }

  #append(transaction: PostgresTransaction): { events: AppendedEvent[]; growth: Map<string, number | null> } {
    const events: AppendedEvent[] = [];
    const growth = new Map<string, number | null>();
    for (const { stream, render } of transaction.emissions) {
      const last = latest(stream, growth, this.#growth) ?? { seq: this.#current.lastSeq(stream) };
      if (render === null) {
        if (last.seq !== null) growth.set(stream, null);
        continue;
      }
      if (last.seq === null) throw new CollabError('environment_not_found', 'The environment has been deleted');
      const seq = last.seq + 1;
      const text = render(seq);
      this.#chars += stream.length + text.length;
      events.push({ stream, seq, text });
      growth.set(stream, seq);
    }
    return { events, growth };
  }
}

/** The position of a stream in the first of some maps that has one. */
function latest(
  stream: string,
  ...maps: readonly ReadonlyMap<string, number | null>[]
): { readonly seq: number | null } | undefined {
  for (const map of maps) {
    const seq = map.get(stream);
    if (seq !== undefined) return { seq };
  }
  return undefined;
}

function tooLarge(chars: number): CollabError {
  return new CollabError(
    'payload_too_large',
    `The change is too large to be stored: it has ${chars} characters, and one commit takes at most ${LARGEST_CHARS}`,
  );
}
