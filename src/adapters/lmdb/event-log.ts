import type { StoredEvent } from '../../ports/store.ts';
import { type Slot, textOf } from './batch.ts';
import type { Database } from './database.ts';

interface Tail {
  /** Position of the last event. */
  last: number;
  /** Events up to `last` that the segments may not have yet, in order without a gap. */
  slots: Slot[];
}

/** Events of one segment at most, so that a read from the middle of the log stays small. */
const SEGMENT_EVENTS = 256;

/** The event logs of all environments: folded segments on disk, and behind them the tails in memory. */
export class EventLog {
  readonly #database: Database;
  readonly #openTree: () => void;
  readonly #tails = new Map<string, Tail>();

  /** @param openTree called before the segments are read (`Replica.openTree`); may call `append` and `drop` */
  constructor(database: Database, openTree: () => void) {
    this.#database = database;
    this.#openTree = openTree;
  }

  /** Position of the last event: what the next one counts from. */
  last(environmentId: string): number {
    return this.#tail(environmentId).last;
  }

  /** Takes an event of the log that was committed at `position`. Returns false when it is known already. */
  append(environmentId: string, seq: number, slot: Slot, position: number): boolean {
    // The segments may be ahead of this process already: what it has not seen, its followers have not either.
    const tail = this.#tails.get(environmentId) ?? this.#newTail(environmentId, seq - 1);
    if (seq <= tail.last) return false;
    slot.position = position;
    tail.slots.push(slot);
    tail.last = seq;
    return true;
  }

  /** Events after `since`, at most `limit`. */
  read(environmentId: string, since: number, limit: number): StoredEvent[] {
    const held = this.#tail(environmentId);
    if (since + 1 < firstIn(held)) this.#openTree();
    const tail = this.#tail(environmentId);
    const firstInTail = firstIn(tail);
    const events = since + 1 < firstInTail ? this.#readSegments(environmentId, since, Math.min(limit, firstInTail - 1 - since)) : [];
    const from = events.at(-1)?.seq ?? since;
    for (let i = Math.max(0, from + 1 - firstInTail); i < tail.slots.length && events.length < limit; i++) {
      events.push({ seq: firstInTail + i, text: textOf(tail.slots[i] as Slot) ?? '' });
    }
    return events;
  }

  oldest(environmentId: string): number {
    this.#openTree();
    for (const { key } of this.#database.segments.getRange({ ...bounds(environmentId), limit: 1 })) return firstSeqOf(key);
    return firstIn(this.#tail(environmentId));
  }

  /** Writes the tails up to `position` as segments; inside a write transaction. */
  fold(position: number): void {
    for (const [environmentId, tail] of this.#tails) {
      const { slots } = tail;
      const firstInTail = firstIn(tail);
      const from = Math.max(0, this.#lastFolded(environmentId) + 1 - firstInTail);
      const to = countUpTo(slots, position);
      for (let i = from; i < to; i += SEGMENT_EVENTS) {
        const text = slots.slice(i, Math.min(to, i + SEGMENT_EVENTS)).map(textOf).join('\n');
        void this.#database.segments.put(segmentKey(environmentId, firstInTail + i), text);
      }
    }
  }

  /** Forgets tail events that are folded: written at or before `position`. */
  drop(position: number): void {
    for (const tail of this.#tails.values()) tail.slots = tail.slots.slice(countUpTo(tail.slots, position));
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
   * @returns per environment the events that it had not seen, in order
   */
  *catchUpFromSegments(): Iterable<[environmentId: string, event: StoredEvent]> {
    const seen = new Map([...this.#tails].map(([environmentId, { last }]) => [environmentId, last]));
    this.#tails.clear();
    for (const environmentId of this.environments()) {
      const tail = this.#tail(environmentId);
      for (let since = seen.get(environmentId) ?? 0; since < tail.last; ) {
        const events = this.read(environmentId, since, 1000);
        if (events.length === 0) break;
        for (const event of events) yield [environmentId, event];
        since = (events.at(-1) as StoredEvent).seq;
      }
    }
  }

  #tail(environmentId: string): Tail {
    const known = this.#tails.get(environmentId);
    if (known !== undefined) return known;
    this.#openTree();
    return this.#tails.get(environmentId) ?? this.#newTail(environmentId, this.#lastFolded(environmentId));
  }

  #newTail(environmentId: string, last: number): Tail {
    const tail: Tail = { last, slots: [] };
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

/** Position of the first event of a tail; where it holds none, of the next event. */
function firstIn({ last, slots }: Tail): number {
  return last - slots.length + 1;
}

/** How many of the slots, which are in order, were committed at or before `position`. */
function countUpTo(slots: readonly Slot[], position: number): number {
  const after = slots.findIndex((slot) => slot.position > position);
  return after < 0 ? slots.length : after;
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
