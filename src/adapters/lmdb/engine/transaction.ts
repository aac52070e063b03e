import type { Entry, RangeOptions, Reader, RenderEvent, Transaction } from '../../../ports/store.ts';
import type { StoreView } from './store-view.ts';

interface Read {
  readonly partition: string;
  readonly key: string;
  /** Position of the store view at the time of the read. */
  readonly position: number;
}

/** A buffered write: a `value` (undefined: delete), or a `change` to be evaluated at commit. */
export type Operation =
  | {
      readonly partition: string;
      readonly key: string;
      readonly value: string | undefined;
      readonly change?: undefined;
    }
  | {
      readonly partition: string;
      readonly key: string;
      readonly value?: undefined;
      readonly change: (current: string | undefined) => string | undefined;
    };

/** An event to append to a stream; `render` is null for the end of the stream. */
export interface Emission {
  readonly stream: string;
  readonly render: RenderEvent | null;
}

/** The reads and buffered writes of one run of a transaction's work. */
export class LmdbTransaction implements Transaction {
  readonly reads: Read[] = [];
  readonly operations: Operation[] = [];
  readonly events: Emission[] = [];
  readonly unguarded: Reader;
  readonly #view: StoreView;

  /** @param unguarded reads of the store as of now */
  constructor(view: StoreView, unguarded: Reader) {
    this.#view = view;
    this.unguarded = unguarded;
  }

  /** Whether there is anything to commit. */
  get writes(): boolean {
    return this.operations.length > 0 || this.events.length > 0;
  }

  get(partition: string, key: string): Promise<string | undefined> {
    this.#view.refresh();
    this.reads.push({ partition, key, position: this.#view.head });
    return Promise.resolve(this.#view.get(partition, key));
  }

  range(partition: string, options: RangeOptions = {}): Promise<Entry[]> {
    return this.unguarded.range(partition, options);
  }

  put(partition: string, key: string, value: string): void {
    this.operations.push({ partition, key, value });
  }

  delete(partition: string, key: string): void {
    this.operations.push({ partition, key, value: undefined });
  }

  update(partition: string, key: string, change: (current: string | undefined) => string | undefined): void {
    this.operations.push({ partition, key, change });
  }

  emit(stream: string, render: RenderEvent): void {
    this.events.push({ stream, render });
  }

  endStream(stream: string): void {
    this.events.push({ stream, render: null });
  }
}
