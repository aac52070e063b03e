import { CollabError } from '../../../model/errors.ts';
import type { Growth } from '../../../ports/store.ts';
import { type Batch, type LoggedEvent, STREAM_END } from './batch.ts';
import type { StoreView } from './store-view.ts';
import type { LmdbTransaction } from './transaction.ts';

/** The result of a transaction: on disk; to be run again; or refused, because one of its updates threw or the commit failed. */
export type CommitOutcome = { readonly kind: 'committed' } | { readonly kind: 'conflict' } | { readonly kind: 'failed'; readonly error: unknown };

/** The value that one operation of a transaction writes. */
interface Write {
  readonly partition: string;
  readonly key: string;
  readonly value: string | undefined;
}

/** The writes and events of the transactions in one group commit, on top of the committed store view. */
export class CommitGroup {
  /** Transactions added so far, whatever their outcome. */
  size = 0;
  /** Characters of the values to write so far. */
  length = 0;
  readonly #view: StoreView;
  readonly #writes = new Map<string, Map<string, string | undefined>>();
  readonly #events: LoggedEvent[] = [];
  readonly #lastSeq = new Map<string, number>();

  constructor(view: StoreView) {
    this.#view = view;
  }

  /** Validates a transaction and adds all of its writes and events, or none. */
  add(transaction: LmdbTransaction): CommitOutcome {
    this.size++;
    for (const { partition, key, position } of transaction.reads) {
      if (this.#writes.get(partition)?.has(key) === true || this.#view.changedSince(partition, key, position)) return { kind: 'conflict' };
    }
    try {
      const writes = this.#evaluate(transaction);
      const events = this.#assignPositions(transaction);
      for (const write of writes) this.#addWrite(write);
      for (const event of events) {
        this.#events.push(event);
        this.#lastSeq.set(event.stream, event.seq);
      }
      return { kind: 'committed' };
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  /** The streams to which events were added, or that end. */
  growth(): Growth {
    return new Map([...this.#lastSeq].map(([stream, seq]) => [stream, seq === STREAM_END ? null : seq]));
  }

  /** Everything that has been added. */
  batch(): Batch {
    return { writes: this.#writes, events: this.#events };
  }

  #evaluate(transaction: LmdbTransaction): Write[] {
    const writes: Write[] = [];
    for (const { partition, key, value, change } of transaction.operations) {
      writes.push({ partition, key, value: change === undefined ? value : change(this.#current(writes, partition, key)) });
    }
    return writes;
  }

  /** The value after the earlier operations of the transaction, the transactions before it in the group, and all commits. */
  #current(earlier: readonly Write[], partition: string, key: string): string | undefined {
    const own = earlier.findLast((other) => other.key === key && other.partition === partition);
    if (own !== undefined) return own.value;
    const written = this.#writes.get(partition);
    return written?.has(key) === true ? written.get(key) : this.#view.get(partition, key);
  }

  #addWrite({ partition, key, value }: Write): void {
    const values = this.#writes.get(partition);
    if (values === undefined) this.#writes.set(partition, new Map<string, string | undefined>().set(key, value));
    else values.set(key, value);
    this.length += value?.length ?? 0;
  }

  #assignPositions(transaction: LmdbTransaction): LoggedEvent[] {
    const events: LoggedEvent[] = [];
    for (const { stream, render } of transaction.events) {
      const last = events.findLast((other) => other.stream === stream)?.seq ?? this.#lastSeq.get(stream) ?? this.#committedLast(stream);
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
