import type { StoredEvent } from '../../../ports/store.ts';
import { type Slot, textOf } from './batch.ts';
import type { Database } from '../env/database.ts';
import { decodeEventChunk, encodeEventChunk, eventCountOf } from './event-chunk.ts';

interface Tail {
  /** Position of the last event. */
  last: number;
  /** Events up to `last` that the segments may not have yet, in order without a gap. */
  slots: Slot[];
}

/** Of a stream that has ended. The segments may still hold it; nothing reads them. */
const NO_EVENTS: Tail = { last: 0, slots: [] };

/** Events of one segment at most, so that a read from the middle of the log stays small. */
const SEGMENT_EVENTS = 256;

/** All streams of events: folded segments on disk, and behind them the tails in memory. */
export class EventLog {
  readonly #database: Database;
  readonly #openTree: () => void;
  readonly #tails = new Map<string, Tail>();
  /** Streams that have ended since this process opened the store, and the positions of the commits that ended them. */
  readonly #ends = new Map<string, number>();

  /** @param openTree called before the segments are read (`Replica.openTree`); may call `append` and `drop` */
  constructor(database: Database, openTree: () => void) {
    this.#database = database;
    this.#openTree = openTree;
  }

  /** Position of the last event: what the next one counts from. */
  last(stream: string): number {
    return this.#tail(stream).last;
  }

  /** Takes an event of the log that was committed at `position`. Returns false when it is known already. */
  append(stream: string, seq: number, slot: Slot, position: number): boolean {
    if (this.#ends.has(stream)) return false;
    // The segments may be ahead of this process already: what it has not seen, its followers have not either.
    const tail = this.#tails.get(stream) ?? this.#newTail(stream, seq - 1);
    if (seq <= tail.last) return false;
    slot.position = position;
    tail.slots.push(slot);
    tail.last = seq;
    return true;
  }

  /** Takes the end of a stream that was committed at `position`. */
  end(stream: string, position: number): void {
    this.#tails.delete(stream);
    this.#ends.set(stream, position);
  }

  /** Whether a stream has ended, as far as this process knows. */
  hasEnded(stream: string): boolean {
    return this.#ends.has(stream);
  }

  /** Events after `since`, at most `limit`. */
  read(stream: string, since: number, limit: number): StoredEvent[] {
    const held = this.#tail(stream);
    if (since + 1 < firstIn(held)) this.#openTree();
    const tail = this.#tail(stream);
    const firstInTail = firstIn(tail);
    const events = since + 1 < firstInTail ? this.#readSegments(stream, since, Math.min(limit, firstInTail - 1 - since)) : [];
    const from = events.at(-1)?.seq ?? since;
    for (let i = Math.max(0, from + 1 - firstInTail); i < tail.slots.length && events.length < limit; i++) {
      events.push({ seq: firstInTail + i, text: textOf(tail.slots[i] as Slot) ?? '' });
    }
    return events;
  }

  oldest(stream: string): number {
    this.#openTree();
    if (this.#ends.has(stream)) return 1;
    for (const { key } of this.#database.eventChunks.getRange({ ...bounds(stream), limit: 1 })) return firstSeqOf(key);
    return firstIn(this.#tail(stream));
  }

  /** Writes what was committed after `from` and up to `position` into the segments; inside a write transaction. */
  fold(from: number, position: number): void {
    for (const [stream, end] of this.#ends) if (end > from && end <= position) this.#removeSegments(stream);
    for (const [stream, tail] of this.#tails) {
      const { slots } = tail;
      const firstInTail = firstIn(tail);
      const first = Math.max(0, this.#lastFolded(stream) + 1 - firstInTail);
      const to = countUpTo(slots, position);
      for (let i = first; i < to; i += SEGMENT_EVENTS) {
        const texts = slots.slice(i, Math.min(to, i + SEGMENT_EVENTS)).map((slot) => textOf(slot) ?? '');
        void this.#database.eventChunks.put(segmentKey(stream, firstInTail + i), encodeEventChunk(texts));
      }
    }
  }

  /** Forgets tail events that are folded: written at or before `position`. */
  drop(position: number): void {
    for (const tail of this.#tails.values()) tail.slots = tail.slots.slice(countUpTo(tail.slots, position));
  }

  /** Removes whole segments that end at or before `seq`, but never the last one; inside a write transaction. */
  trim(stream: string, seq: number): void {
    const keys = [...this.#database.eventChunks.getKeys(bounds(stream))];
    keys.forEach((key, i) => {
      const next = keys[i + 1];
      if (next !== undefined && firstSeqOf(next) - 1 <= seq) void this.#database.eventChunks.remove(key);
    });
  }

  /** Every stream that has events. */
  streams(): string[] {
    const found = new Set(this.#tails.keys());
    for (let after = ''; ; ) {
      const [key] = this.#database.eventChunks.getKeys({ start: after, limit: 1 });
      if (key === undefined) return [...found];
      const stream = key.slice(0, key.indexOf(' '));
      found.add(stream);
      after = `${stream}!`;
    }
  }

  /**
   * Starts over from the segments after this process fell behind the log.
   * @returns per stream the events that it had not seen, in order; null for one that has ended meanwhile
   */
  *catchUpFromSegments(): Iterable<[stream: string, event: StoredEvent | null]> {
    const seen = new Map([...this.#tails].map(([stream, { last }]) => [stream, last]));
    this.#tails.clear();
    for (const [stream, last] of seen) {
      if (last === 0 || this.#lastFolded(stream) > 0) continue;
      // The last event of a stream is always kept.
      this.end(stream, 0);
      yield [stream, null];
    }
    for (const stream of this.streams()) {
      const tail = this.#tail(stream);
      for (let since = seen.get(stream) ?? 0; since < tail.last; ) {
        const events = this.read(stream, since, 1000);
        if (events.length === 0) break;
        for (const event of events) yield [stream, event];
        since = (events.at(-1) as StoredEvent).seq;
      }
    }
  }

  #tail(stream: string): Tail {
    if (this.#ends.has(stream)) return NO_EVENTS;
    const known = this.#tails.get(stream);
    if (known !== undefined) return known;
    this.#openTree();
    return this.#tails.get(stream) ?? this.#newTail(stream, this.#lastFolded(stream));
  }

  #newTail(stream: string, last: number): Tail {
    const tail: Tail = { last, slots: [] };
    this.#tails.set(stream, tail);
    return tail;
  }

  #lastFolded(stream: string): number {
    const { start, end } = bounds(stream);
    for (const { key, value } of this.#database.eventChunks.getRange({ start: end, end: start, reverse: true, limit: 1 })) {
      return firstSeqOf(key) + eventCountOf(value) - 1;
    }
    return 0;
  }

  #removeSegments(stream: string): void {
    for (const key of [...this.#database.eventChunks.getKeys(bounds(stream))]) void this.#database.eventChunks.remove(key);
  }

  #readSegments(stream: string, since: number, limit: number): StoredEvent[] {
    const { eventChunks } = this.#database;
    const [holding] = eventChunks.getKeys({
      start: segmentKey(stream, since + 1),
      end: bounds(stream).start,
      reverse: true,
      limit: 1,
    });
    const events: StoredEvent[] = [];
    const range = { start: holding ?? bounds(stream).start, end: bounds(stream).end };
    for (const { key, value } of eventChunks.getRange(range)) {
      const first = firstSeqOf(key);
      for (const [i, text] of decodeEventChunk(key, value).entries()) {
        if (first + i > since && events.length < limit) events.push({ seq: first + i, text });
      }
      if (events.length >= limit) break;
    }
    return events;
  }
}

/** Position of the first event of a tail; where it holds none, of the next event. */
function firstIn({ last, slots }: Tail): number {
  return last - slots.length + 1;
}

/** How many of the slots, which are in order, were committed at or before `position`. */
function countUpTo(slots: readonly Slot[], position: number): number {
  const after = slots.findIndex((slot) => slot.position > position);
  return after < 0 ? slots.length : after;
}

function segmentKey(stream: string, firstSeq: number): string {
  return `${stream} ${String(firstSeq).padStart(16, '0')}`;
}

function firstSeqOf(key: string): number {
  return Number(key.slice(key.indexOf(' ') + 1));
}

function bounds(stream: string): { start: string; end: string } {
  return { start: `${stream} `, end: `${stream}!` };
}
