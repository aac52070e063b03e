import type { StoredEvent } from '../../../ports/store.ts';
import { type EncodedText, textOf } from './batch.ts';
import type { Database } from '../env/database.ts';
import { EventChunks } from './event-chunks.ts';
import { EventPage } from './event-page.ts';

interface Tail {
  /** Position of the last event. */
  last: number;
  /** The latest events up to `last` without a gap. The chunks have every event before them, and may have these too. */
  encodedTexts: EncodedText[];
}

/** The tail of a stream that has ended. The chunks may still have its events; nothing reads them. */
const NO_EVENTS: Tail = { last: 0, encodedTexts: [] };

/** The events of all streams: chunks on disk, followed by tails in memory. */
export class EventLog {
  readonly #chunks: EventChunks;
  readonly #reloadEvents: number;
  readonly #prepareTableRead: () => void;
  readonly #tails = new Map<string, Tail>();
  /** Streams that have ended since this process opened the store -> position of the commit that ended them. */
  readonly #ends = new Map<string, number>();

  /**
   * @param prepareTableRead called before chunks are read (`StoreView.prepareTableRead`); may call `append` and `drop`
   */
  constructor(database: Pick<Database, 'eventChunks' | 'bounds'>, prepareTableRead: () => void) {
    this.#chunks = new EventChunks(database);
    this.#reloadEvents = database.bounds.reloadEvents;
    this.#prepareTableRead = prepareTableRead;
  }

  /** Position of the last event of a stream; 0 if it has none. */
  last(stream: string): number {
    return this.#tail(stream).last;
  }

  /** Whether the event at a position was read from the log. False for events that only the chunks have. */
  isKnownUpTo(stream: string, seq: number): boolean {
    return (this.#tails.get(stream)?.last ?? 0) >= seq;
  }

  /**
   * Adds an event of the log that was committed at `position`. Returns false if it is known already or the stream has
   * ended.
   */
  append(stream: string, seq: number, encoded: EncodedText, position: number): boolean {
    let tail = this.#tails.get(stream);
    if (tail === undefined) {
      if (this.#ends.has(stream)) return false;
      // The chunks may be ahead of this process: an event that it has not read from the log is new to its followers.
      tail = this.#newTail(stream, seq - 1);
    }
    if (seq <= tail.last) return false;
    encoded.position = position;
    tail.encodedTexts.push(encoded);
    tail.last = seq;
    return true;
  }

  /** Ends a stream, by a commit at `position`. */
  end(stream: string, position: number): void {
    this.#tails.delete(stream);
    this.#ends.set(stream, position);
  }

  /** Whether a stream has ended, as far as this process knows. */
  hasEnded(stream: string): boolean {
    return this.#ends.has(stream);
  }

  /** As `Reader.events` of the store, with all bounds. */
  read(stream: string, since: number, limit: number, maxChars: number): StoredEvent[] {
    // Preparing the read may drop events from the tail: it is looked up again afterwards.
    if (since + 1 < firstIn(this.#tail(stream))) this.#prepareTableRead();
    const tail = this.#tail(stream);
    const firstInTail = firstIn(tail);
    const page = new EventPage(limit, maxChars);
    if (since + 1 < firstInTail) this.#chunks.read(stream, since, firstInTail - 1, page);
    const from = page.events.at(-1)?.seq ?? since;
    for (let i = Math.max(0, from + 1 - firstInTail); i < tail.encodedTexts.length && !page.isFull; i++) {
      page.add(firstInTail + i, textOf(tail.encodedTexts[i] as EncodedText) ?? '');
    }
    return page.events;
  }

  /** Position of the oldest event that is kept; that of the next event if none is. */
  oldest(stream: string): number {
    this.#prepareTableRead();
    if (this.#ends.has(stream)) return 1;
    return this.#chunks.first(stream) ?? firstIn(this.#tail(stream));
  }

  /**
   * Writes what was committed after `from` and up to `position` to the chunks; inside a write transaction of the base
   * table.
   */
  checkpoint(from: number, position: number): void {
    for (const [stream, end] of this.#ends) if (end > from && end <= position) this.#chunks.remove(stream);
    for (const [stream, tail] of this.#tails) {
      const firstInTail = firstIn(tail);
      const first = Math.max(0, this.#chunks.last(stream) + 1 - firstInTail);
      this.#chunks.append(
        stream,
        firstInTail + first,
        tail.encodedTexts.slice(first, countUpTo(tail.encodedTexts, position)),
      );
    }
  }

  /** Drops from memory the events committed at or before `position`: the chunks have them. */
  drop(position: number): void {
    for (const tail of this.#tails.values())
      tail.encodedTexts = tail.encodedTexts.slice(countUpTo(tail.encodedTexts, position));
  }

  /**
   * Removes chunks that end at or before `seq`, but never the last one; inside a write transaction of the base table.
   */
  trim(stream: string, seq: number): void {
    this.#chunks.trim(stream, seq);
  }

  /** Notes the last event of every stream, so that `reloadFromChunks` can tell what comes later. */
  noteLastEvents(): void {
    this.#prepareTableRead();
    for (const stream of this.#chunks.streams()) this.#tail(stream);
  }

  /**
   * Reloads the positions of all streams from the chunks, after this process fell behind the log.
   *
   * @returns the events that it had not seen since `noteLastEvents`, in order per stream; null for a stream that has ended
   *   meanwhile
   */
  *reloadFromChunks(): Iterable<[stream: string, event: StoredEvent | null]> {
    const seen = new Map([...this.#tails].map(([stream, { last }]) => [stream, last]));
    this.#tails.clear();
    for (const [stream, last] of seen) {
      // Trimming keeps the last event of a stream: one that has none any more has ended.
      if (last === 0 || this.#chunks.last(stream) > 0) continue;
      this.end(stream, 0);
      yield [stream, null];
    }
    for (const stream of this.#chunks.streams()) {
      const tail = this.#tail(stream);
      for (let since = seen.get(stream) ?? 0; since < tail.last;) {
        const events = this.read(stream, since, this.#reloadEvents, Infinity);
        if (events.length === 0) break;
        for (const event of events) yield [stream, event];
        since = (events.at(-1) as StoredEvent).seq;
      }
    }
  }

  #tail(stream: string): Tail {
    const known = this.#tails.get(stream);
    if (known !== undefined) return known;
    if (this.#ends.has(stream)) return NO_EVENTS;
    this.#prepareTableRead();
    return this.#tails.get(stream) ?? this.#newTail(stream, this.#chunks.last(stream));
  }

  #newTail(stream: string, last: number): Tail {
    const tail: Tail = { last, encodedTexts: [] };
    this.#tails.set(stream, tail);
    return tail;
  }
}

/** Position of the first event of a tail; that of the next event if it has none. */
function firstIn({ last, encodedTexts }: Tail): number {
  return last - encodedTexts.length + 1;
}

/** Counts the encoded texts that were committed at or before `position`. They are in order of their positions. */
function countUpTo(encodedTexts: readonly EncodedText[], position: number): number {
  const after = encodedTexts.findIndex((encoded) => encoded.position > position);
  return after < 0 ? encodedTexts.length : after;
}
