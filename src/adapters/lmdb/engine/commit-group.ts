import { CollabError } from '../../../model/errors.ts';
import { MOVES, movedRefusal } from '../../../model/move.ts';
import type { Growth } from '../../../ports/store.ts';
import {
  type Batch,
  BATCH_FRAME_BYTES,
  ENTRY_BYTES,
  largestSizeOf,
  type LoggedEvent,
  MAX_BYTES_PER_CHAR,
  STREAM_END,
} from './batch.ts';
import type { StoreView } from './store-view.ts';
import type { LmdbTransaction, Operation } from './transaction.ts';

/**
 * The result of a transaction: on disk; to be run again; or refused, because one of its updates threw or the commit
 * failed.
 */
export type CommitOutcome =
  | { readonly kind: 'committed' }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** The state of the group that one operation of a transaction has replaced. */
interface Replaced {
  readonly partition: string;
  readonly key: string;
  /** The value of an earlier operation, null for a deletion; undefined if there was none. */
  readonly value: string | null | undefined;
}

/** The writes and events of the transactions in one group commit, on top of the committed store view. */
export class CommitGroup {
  /** Transactions added so far, whatever their outcome. */
  size = 0;
  readonly #view: StoreView;
  readonly #largestBytes: number;
  readonly #writes = new Map<string, Map<string, string | null>>();
  readonly #events: LoggedEvent[] = [];
  readonly #lastSeq = new Map<string, number>();
  /** Characters of the values and events so far. */
  #textLength = 0;
  /** The most bytes of the batch besides these, so far. */
  #headerBytes = BATCH_FRAME_BYTES;

  /** @param largestBytes the largest batch, in bytes */
  constructor(view: StoreView, largestBytes: number) {
    this.#view = view;
    this.#largestBytes = largestBytes;
  }

  /** Characters of the batch so far, approximately: values, events, names and keys. */
  get length(): number {
    return this.#textLength + this.#headerBytes;
  }

  /**
   * Validates a transaction and adds all of its writes and events, or none. Returns null if it does not fit into the
   * batch together with the transactions before it: it must wait for the next group, and so must those after it. A
   * transaction that is too large for any batch fails with `payload_too_large`.
   */
  add(transaction: LmdbTransaction): CommitOutcome | null {
    const outcome = this.#refuse(transaction) ?? this.#validate(transaction) ?? this.#add(transaction);
    if (outcome !== null) this.size++;
    return outcome;
  }

  /** While the store is moved to another one, only the record of the move may be written. */
  #refuse({ operations }: LmdbTransaction): CommitOutcome | null {
    if (!this.#view.isMoving || operations.some(({ partition }) => partition === MOVES)) return null;
    return { kind: 'failed', error: movedRefusal() };
  }

  /** The conflict of a transaction with what was committed or added after its reads; null if there is none. */
  #validate(transaction: LmdbTransaction): CommitOutcome | null {
    const { head } = this.#view;
    for (const { partition, key, position } of transaction.reads) {
      if (this.#writes.get(partition)?.has(key) === true) return { kind: 'conflict' };
      // Most often nothing at all was committed since the read.
      if (position !== head && this.#view.changedSince(partition, key, position)) return { kind: 'conflict' };
    }
    return null;
  }

  #add(transaction: LmdbTransaction): CommitOutcome | null {
    const replaced: Replaced[] = [];
    const textLength = this.#textLength;
    const headerBytes = this.#headerBytes;
    const isFirst = this.#writes.size === 0 && this.#events.length === 0;
    const takeBack = (): void => {
      this.#restore(replaced);
      this.#textLength = textLength;
      this.#headerBytes = headerBytes;
    };
    try {
      for (const operation of transaction.operations) replaced.push(this.#write(operation));
      const events = this.#assignPositions(transaction);
      const bytes = this.#sizeWith(events);
      if (bytes > this.#largestBytes) {
        takeBack();
        return isFirst ? { kind: 'failed', error: tooLarge(bytes, this.#largestBytes) } : null;
      }
      for (const event of events) {
        this.#events.push(event);
        this.#lastSeq.set(event.stream, event.seq);
      }
      return { kind: 'committed' };
    } catch (error) {
      takeBack();
      return { kind: 'failed', error };
    }
  }

  /**
   * At most how many bytes the batch has with these events. The texts are measured only if the batch may be too large
   * by their number of characters.
   */
  #sizeWith(events: readonly LoggedEvent[]): number {
    for (const { stream, text } of events) {
      this.#textLength += text.length;
      this.#headerBytes += ENTRY_BYTES + stream.length;
    }
    const most = this.#headerBytes + MAX_BYTES_PER_CHAR * this.#textLength;
    return most <= this.#largestBytes
      ? most
      : largestSizeOf({ writes: this.#writes, events: [...this.#events, ...events] });
  }

  /** The streams to which events were added, or that end. */
  growth(): Growth {
    return new Map([...this.#lastSeq].map(([stream, seq]) => [stream, seq === STREAM_END ? null : seq]));
  }

  /** Everything that has been added. */
  batch(): Batch {
    return { writes: this.#writes, events: this.#events };
  }

  /** Adds one operation. A `change` is given the value after the operations before it in the group, and all commits. */
  #write({ partition, key, value, change }: Operation): Replaced {
    let values = this.#writes.get(partition);
    const earlier = values?.get(key);
    const next =
      change === undefined
        ? value
        : change(earlier === undefined ? this.#view.get(partition, key) : (earlier ?? undefined));
    if (values === undefined) {
      this.#writes.set(partition, (values = new Map<string, string | null>()));
      this.#headerBytes += ENTRY_BYTES + partition.length;
    }
    values.set(key, next ?? null);
    this.#textLength += next?.length ?? 0;
    this.#headerBytes += ENTRY_BYTES + key.length;
    return { partition, key, value: earlier };
  }

  /** Takes back the operations of a transaction that has failed, of which these are the first. */
  #restore(replaced: readonly Replaced[]): void {
    for (const { partition, key, value } of replaced.toReversed()) {
      const values = this.#writes.get(partition);
      if (value !== undefined) values?.set(key, value);
      else values?.delete(key);
      if (values?.size === 0) this.#writes.delete(partition);
    }
  }

  #assignPositions(transaction: LmdbTransaction): LoggedEvent[] {
    const events: LoggedEvent[] = [];
    for (const { stream, render } of transaction.events) {
      const last =
        events.findLast((other) => other.stream === stream)?.seq ??
        this.#lastSeq.get(stream) ??
        this.#committedLast(stream);
      const seq = render === null ? STREAM_END : last + 1;
      if (last !== STREAM_END) events.push({ stream, seq, text: render?.(seq) ?? '' });
      else if (render !== null) throw new CollabError('environment_not_found', 'The environment has been deleted');
    }
    return events;
  }

  #committedLast(stream: string): number {
    const { events } = this.#view;
    return events.hasEnded(stream) ? STREAM_END : events.last(stream);
  }
}

function tooLarge(bytes: number, most: number): CollabError {
  return new CollabError(
    'payload_too_large',
    `The change is too large to be stored: it takes ${bytes} bytes of the log, and one commit takes at most ${most}`,
  );
}
