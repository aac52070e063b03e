import { CollabError } from '../../../model/errors.ts';
import type { Growth } from '../../../ports/store.ts';
import { type Batch, type LoggedEvent, STREAM_END } from './batch.ts';
import type { StoreView } from './store-view.ts';
import type { LmdbTransaction, Operation } from './transaction.ts';

/** The result of a transaction: on disk; to be run again; or refused, because one of its updates threw or the commit failed. */
export type CommitOutcome = { readonly kind: 'committed' } | { readonly kind: 'conflict' } | { readonly kind: 'failed'; readonly error: unknown };

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
  /** Characters of the values to write so far. */
  length = 0;
  readonly #view: StoreView;
  readonly #writes = new Map<string, Map<string, string | null>>();
  readonly #events: LoggedEvent[] = [];
  readonly #lastSeq = new Map<string, number>();

  constructor(view: StoreView) {
    this.#view = view;
  }

  /** Validates a transaction and adds all of its writes and events, or none. */
  add(transaction: LmdbTransaction): CommitOutcome {
    this.size++;
    const { head } = this.#view;
    for (const { partition, key, position } of transaction.reads) {
      if (this.#writes.get(partition)?.has(key) === true) return { kind: 'conflict' };
      // Most often nothing at all was committed since the read.
      if (position !== head && this.#view.changedSince(partition, key, position)) return { kind: 'conflict' };
    }
    const replaced: Replaced[] = [];
    const { length } = this;
    try {
      for (const operation of transaction.operations) replaced.push(this.#write(operation));
      const events = this.#assignPositions(transaction);
      for (const event of events) {
        this.#events.push(event);
        this.#lastSeq.set(event.stream, event.seq);
      }
      return { kind: 'committed' };
    } catch (error) {
      this.#restore(replaced);
      this.length = length;
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

  /** Adds one operation. A `change` is given the value after the operations before it in the group, and all commits. */
  #write({ partition, key, value, change }: Operation): Replaced {
    let values = this.#writes.get(partition);
    const earlier = values?.get(key);
    const next = change === undefined ? value : change(earlier === undefined ? this.#view.get(partition, key) : (earlier ?? undefined));
    if (values === undefined) this.#writes.set(partition, (values = new Map<string, string | null>()));
    values.set(key, next ?? null);
    this.length += next?.length ?? 0;
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
