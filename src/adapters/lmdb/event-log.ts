import type { StoredEvent } from '../../ports/store.ts';
import { type Slice, textOf } from './batch.ts';
import type { Database } from './database.ts';

interface TailEvent {
  readonly seq: number;
  readonly slice: Slice;
  readonly position: number;
}

interface Tail {
  /** Position of the last committed event. */
  last: number;
  /** Position of the last flushed one: further ones are not shown yet. */
  flushed: number;
  /** Events that the segments may not have yet, in order without a gap. */
  events: TailEvent[];
}

/** Events of one segment at most, so that a read from the middle of the log stays small. */
const SEGMENT_EVENTS = 256;

/** The event logs of all environments: folded segments on disk, and behind them the tails in memory. */
export class EventLog {
  readonly #database: Database;
  readonly #tails = new Map<string, Tail>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Position of the last committed event, flushed or not: what the next one counts from. */
  lastCommitted(environmentId: string): number {
    return this.#tail(environmentId).last;
  }

  lastFlushed(environmentId: string): number {
    return this.#tail(environmentId).flushed;
  }

  append(environmentId: string, seq: number, slice: Slice, position: number): void {
    // The segments may be ahead of this process already: what it has not seen, its followers have not either.
    const tail = this.#tails.get(environmentId) ?? this.#newTail(environmentId, seq - 1);
    if (seq <= tail.last) return;
    tail.events.push({ seq, slice, position });
    tail.last = seq;
  }

  markFlushed(environmentId: string, seq: number): void {
    const tail = this.#tail(environmentId);
    tail.flushed = Math.max(tail.flushed, seq);
  }

  /** Flushed events after `since`, at most `limit`. */
  read(environmentId: string, since: number, limit: number): StoredEvent[] {
    const tail = this.#tail(environmentId);
    const firstInTail = tail.events[0]?.seq ?? tail.last + 1;
    const events = since + 1 < firstInTail ? this.#readSegments(environmentId, since, Math.min(limit, firstInTail - 1 - since)) : [];
    const from = events.at(-1)?.seq ?? since;
    for (let i = Math.max(0, from + 1 - firstInTail); i < tail.events.length && events.length < limit; i++) {
      const { seq, slice } = tail.events[i] as TailEvent;
      if (seq > tail.flushed) break;
      events.push({ seq, text: textOf(slice) });
    }
    return events;
  }

  oldest(environmentId: string): number {
    for (const { key } of this.#database.segments.getRange({ ...bounds(environmentId), limit: 1 })) return firstSeqOf(key);
    const tail = this.#tail(environmentId);
    return tail.events[0]?.seq ?? tail.last + 1;
  }

  /** Writes the tails up to `position` as segments; inside a write transaction. */
  fold(position: number): void {
    for (const [environmentId, tail] of this.#tails) {
      const folded = this.#lastFolded(environmentId);
      const events = tail.events.filter((event) => event.position <= position && event.seq > folded);
      for (let i = 0; i < events.length; i += SEGMENT_EVENTS) {
        const segment = events.slice(i, i + SEGMENT_EVENTS);
        const text = segment.map(({ slice }) => textOf(slice)).join('\n');
        void this.#database.segments.put(segmentKey(environmentId, (segment[0] as TailEvent).seq), text);
      }
    }
  }

  /** Forgets tail events that are folded: written at or before `position`. */
  drop(position: number): void {
    for (const tail of this.#tails.values()) {
      const keep = tail.events.findIndex((event) => event.position > position);
      tail.events = keep < 0 ? [] : tail.events.slice(keep);
    }
  }

  /** Removes whole segments that end at or before `seq`, but never the last one; inside a write transaction. */
  trim(environmentId: string, seq: number): void {
    const keys = [...this.#database.segments.getKeys(bounds(environmentId))];
    keys.forEach((key, i) => {
      const next = keys[i + 1];
      if (next !== undefined && firstSeqOf(next) - 1 <= seq) void this.#database.segments.remove(key);
    });
  }

  /** Removes the whole log of an environment; inside a write transaction. */
  remove(environmentId: string): void {
    for (const key of [...this.#database.segments.getKeys(bounds(environmentId))]) void this.#database.segments.remove(key);
    this.#tails.delete(environmentId);
  }

  /** Every environment that has events. */
  environments(): string[] {
    const found = new Set(this.#tails.keys());
    for (let after = ''; ; ) {
      const [key] = this.#database.segments.getKeys({ start: after, limit: 1 });
      if (key === undefined) return [...found];
      const environmentId = key.slice(0, key.indexOf(' '));
      found.add(environmentId);
      after = `${environmentId}!`;
    }
  }

  /**
   * Starts over from the segments after this process fell behind the log.
   * @returns per environment the events that it had not seen flushed, in order
   */
  *catchUpFromSegments(): Iterable<[environmentId: string, event: StoredEvent]> {
    const seen = new Map([...this.#tails].map(([environmentId, tail]) => [environmentId, tail.flushed]));
    this.#tails.clear();
    for (const environmentId of this.environments()) {
      const tail = this.#tail(environmentId);
      for (let since = seen.get(environmentId) ?? 0; since < tail.flushed; ) {
        const events = this.read(environmentId, since, 1000);
        if (events.length === 0) break;
        for (const event of events) yield [environmentId, event];
        since = (events.at(-1) as StoredEvent).seq;
      }
    }
  }

  #tail(environmentId: string): Tail {
    return this.#tails.get(environmentId) ?? this.#newTail(environmentId, this.#lastFolded(environmentId));
  }

  #newTail(environmentId: string, last: number): Tail {
    const tail: Tail = { last, flushed: last, events: [] };
    this.#tails.set(environmentId, tail);
    return tail;
  }

  #lastFolded(environmentId: string): number {
    const { start, end } = bounds(environmentId);
    for (const { key, value } of this.#database.segments.getRange({ start: end, end: start, reverse: true, limit: 1 })) {
      return firstSeqOf(key) + value.split('\n').length - 1;
    }
    return 0;
  }

  #readSegments(environmentId: string, since: number, limit: number): StoredEvent[] {
    const { segments } = this.#database;
    const [holding] = segments.getKeys({
      start: segmentKey(environmentId, since + 1),
      end: bounds(environmentId).start,
      reverse: true,
      limit: 1,
    });
    const events: StoredEvent[] = [];
    const range = { start: holding ?? bounds(environmentId).start, end: bounds(environmentId).end };
    for (const { key, value } of segments.getRange(range)) {
      const first = firstSeqOf(key);
      for (const [i, text] of value.split('\n').entries()) {
        if (first + i > since && events.length < limit) events.push({ seq: first + i, text });
      }
      if (events.length >= limit) break;
    }
    return events;
  }
}

function segmentKey(environmentId: string, firstSeq: number): string {
  return `${environmentId} ${String(firstSeq).padStart(16, '0')}`;
}

function firstSeqOf(key: string): number {
  return Number(key.slice(key.indexOf(' ') + 1));
}

function bounds(environmentId: string): { start: string; end: string } {
  return { start: `${environmentId} `, end: `${environmentId}!` };
}
