import { type ListenerErrors, Listeners } from '../../../lib/listeners.ts';
import type { EventListener, Growth, StoredEvent } from '../../../ports/store.ts';
import type { Pool } from '../pool.ts';
import type { AppendedEvent } from './write-sql.ts';
import { type Look, Snapshot } from './look-query.ts';

/** What a feed needs of the store. */
export interface FeedSource {
  /** Throws if the database is not the one that was opened. */
  requireSame(incarnation: string): void;
  /** Asks `lookQuery`, in one round trip with the reads of this event loop iteration. */
  look(since: Snapshot): Promise<Look>;
  events(stream: string, since: number, limit: number, maxChars: number): Promise<StoredEvent[]>;
}

/** Milliseconds between a read and the poll that it causes, and at least between two polls that it causes. */
const AFTER_READ_MS = 250;
/**
 * Milliseconds between two polls while nothing changes: a little more than between two checks of open sockets, which
 * take them along.
 */
const QUIET_MS = 950;
/**
 * While nothing changes, a read that comes so many milliseconds after a poll takes the next one with it: one of three
 * ticks of the background worker.
 */
const TAKE_ALONG_MS = 650;
/** Polls that find nothing until the database counts as quiet. */
const QUIET_POLLS = 8;
const PAGE = 1_000;
const PAGE_CHARS = 4_000_000;

/**
 * Calls the followers with the events of all processes, per stream in order. It knows the position up to which they
 * have received each stream, and finds the streams that have grown by the transactions that were not visible to its
 * last look: those that were running then, and those that have begun since. So nothing is missed when transactions
 * commit in another order than they began, and one that somebody leaves open costs nothing.
 */
export class EventFeed {
  readonly #pool: Pool;
  readonly #source: FeedSource;
  readonly #followers: Listeners<Parameters<EventListener>>;
  /** Stream -> position of the last event that the followers have received; null for an end. */
  readonly #positions = new Map<string, number | null>();
  /** Streams of which the next look reads events in the same round trip, because they were announced. */
  #announced = new Set<string>();
  #snapshot = new Snapshot('1:1:');
  #wanted = false;
  #polling: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #polledAt = Number.NEGATIVE_INFINITY;
  #foundNothing = 0;
  #closed = false;

  constructor(pool: Pool, source: FeedSource, faults: ListenerErrors) {
    this.#pool = pool;
    this.#source = source;
    this.#followers = new Listeners(faults.report);
  }

  /** Reads the positions from which on the followers receive events. */
  async begin(): Promise<void> {
    const [snapshot, streams] = await this.#pool.run(
      'select pg_current_snapshot(); select stream, last_seq from collab.streams where not ended',
    );
    this.#snapshot = new Snapshot(snapshot?.[0]?.[0] ?? '');
    for (const [stream, seq] of streams ?? []) this.#positions.set(stream ?? '', Number(seq));
  }

  /** As `Store.follow`. */
  follow(listener: EventListener): () => void {
    return this.#followers.add(listener);
  }

  /** Hands on the events of a commit of this process. */
  committed(growth: Growth, events: readonly AppendedEvent[]): void {
    let gap = false;
    for (const { stream, seq, text } of events) gap = !this.#receive(stream, { seq, text }) || gap;
    for (const [stream, seq] of growth) if (seq === null) this.#end(stream);
    if (gap) this.#pollNow();
  }

  /** As `Store.poll`. */
  poll(growth: Growth | null): void {
    if (this.#closed || (growth !== null && !this.#announce(growth))) return;
    const wait = growth === null && this.#isQuiet ? QUIET_MS - this.#age : 0;
    if (wait <= 0) this.#pollNow();
    else this.#pollIn(wait);
  }

  /** Has the followers called with what a read may show. Call it before the read is sent. */
  beforeRead(): void {
    if (this.#followers.size === 0 || this.#closed) return;
    if (!this.#isQuiet) this.#pollIn(AFTER_READ_MS);
    else if (this.#age >= TAKE_ALONG_MS) this.#pollNow();
    else this.#pollIn(QUIET_MS - this.#age);
  }

  /** Ends the polls, and resolves once none is running. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#polling;
  }

  /** Whether the last polls found nothing. */
  get #isQuiet(): boolean {
    return this.#foundNothing >= QUIET_POLLS;
  }

  /** Milliseconds since the last poll. */
  get #age(): number {
    return performance.now() - this.#polledAt;
  }

  /** Notes the streams of which something is new. Returns whether there is any. */
  #announce(growth: Growth): boolean {
    let isNews = false;
    for (const [stream, seq] of growth) {
      const position = this.#positions.get(stream);
      if (position === null || (seq !== null && position !== undefined && position >= seq)) continue;
      isNews = true;
      if (seq !== null) this.#announced.add(stream);
    }
    return isNews;
  }

  #pollIn(ms: number): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#pollNow(), ms);
    this.#timer.unref();
  }

  #pollNow(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#closed) return;
    this.#wanted = true;
    this.#polling ??= this.#run().finally(() => (this.#polling = undefined));
  }

  async #run(): Promise<void> {
    // In another callback, so that a follower that polls is not called again before it returns.
    await Promise.resolve();
    while (this.#wanted && !this.#closed) {
      this.#wanted = false;
      this.#polledAt = performance.now();
      try {
        this.#foundNothing = (await this.#look()) ? 0 : this.#foundNothing + 1;
      } catch {
        // The database cannot be reached. The next poll looks from the same snapshot.
        return;
      }
    }
  }

  /** Returns whether any stream has changed. */
  async #look(): Promise<boolean> {
    const announced = this.#followers.size > 0 ? [...this.#announced] : [];
    this.#announced.clear();
    const [{ snapshot, incarnation, changed }, ...pages] = await Promise.all([
      this.#source.look(this.#snapshot),
      ...announced.map((stream) => this.#source.events(stream, this.#positions.get(stream) ?? 0, PAGE, PAGE_CHARS)),
    ]);
    this.#source.requireSame(incarnation);
    for (const [i, events] of pages.entries())
      for (const event of events) this.#receive(announced[i] ?? '', event, true);
    for (const { stream, last } of changed) {
      if (last === null) this.#end(stream);
      else await this.#fetch(stream, last);
    }
    // Only now: what could not be fetched is found again.
    this.#snapshot = snapshot;
    return changed.length > 0;
  }

  async #fetch(stream: string, last: number): Promise<void> {
    if (this.#followers.size === 0) return this.#advance(stream, last);
    for (;;) {
      const position = this.#positions.get(stream) ?? 0;
      if (this.#positions.get(stream) === null || position >= last) return;
      const events = await this.#source.events(stream, position, PAGE, PAGE_CHARS);
      // Events were deleted before they were read here, or the stream has ended: the next look says so.
      if (events.length === 0) return this.#advance(stream, last);
      for (const event of events) this.#receive(stream, event, true);
    }
  }

  #advance(stream: string, last: number): void {
    const position = this.#positions.get(stream);
    if (position !== null && (position ?? 0) < last) this.#positions.set(stream, last);
  }

  /** Hands an event on if it is the next one, or the next one that is kept. Returns false if others are missing. */
  #receive(stream: string, event: StoredEvent, isNextKept = false): boolean {
    const position = this.#positions.get(stream) ?? 0;
    if (this.#positions.get(stream) === null || event.seq <= position) return true;
    if (event.seq > position + 1 && !isNextKept) return false;
    this.#positions.set(stream, event.seq);
    this.#followers.call(stream, event);
    return true;
  }

  #end(stream: string): void {
    if (this.#positions.get(stream) === null) return;
    this.#positions.set(stream, null);
    this.#followers.call(stream, null);
  }
}
