import { asBinary } from 'lmdb';
import type { StoreBounds } from '../bounds.ts';
import type { EncodedText } from './batch.ts';
import type { Database } from '../env/database.ts';
import type { EventPage } from './event-page.ts';
import { decodeEventChunk, encodeEventChunk, eventCountOf } from './event-chunk.ts';

type ChunkBounds = Pick<StoreBounds, 'chunkEvents' | 'chunkBytes'>;

/** The table of the chunks, and how large they become. */
export interface ChunkTable {
  readonly eventChunks: Database['eventChunks'];
  readonly bounds: ChunkBounds;
}

/**
 * The events on disk: per stream, chunks of consecutive events in order. Writes belong inside a write transaction of
 * the base table.
 */
export class EventChunks {
  readonly #table: Database['eventChunks'];
  readonly #bounds: ChunkBounds;

  constructor({ eventChunks, bounds }: ChunkTable) {
    this.#table = eventChunks;
    this.#bounds = bounds;
  }

  /** Position of the first event of a stream; undefined if it has none. */
  first(stream: string): number | undefined {
    const [key] = this.#table.getKeys({ ...keyRange(stream), limit: 1 });
    return key === undefined ? undefined : firstSeqOf(key);
  }

  /** Position of the last event of a stream; 0 if it has none. */
  last(stream: string): number {
    const { start, end } = keyRange(stream);
    for (const { key, value } of this.#table.getRange({ start: end, end: start, reverse: true, limit: 1 })) {
      return firstSeqOf(key) + eventCountOf(value) - 1;
    }
    return 0;
  }

  /** Adds the events after `since` up to position `last` to `page`, until it is full. */
  read(stream: string, since: number, last: number, page: EventPage): void {
    const { start, end } = keyRange(stream);
    // The chunk that has the first of these events begins at or before it.
    const [first = start] = this.#table.getKeys({
      start: chunkKey(stream, since + 1),
      end: start,
      reverse: true,
      limit: 1,
    });
    for (const { key, value } of this.#table.getRange({ start: first, end })) {
      const firstSeq = firstSeqOf(key);
      for (const [i, text] of decodeEventChunk(key, value).entries()) {
        const seq = firstSeq + i;
        if (page.isFull || seq > last) return;
        if (seq > since) page.add(seq, text);
      }
    }
  }

  /** Appends consecutive events, of which the first is at `firstSeq`. */
  append(stream: string, firstSeq: number, encodedTexts: readonly EncodedText[]): void {
    for (let from = 0; from < encodedTexts.length;) {
      const to = from + countInChunk(encodedTexts, from, this.#bounds);
      const key = chunkKey(stream, firstSeq + from);
      void this.#table.put(key, asBinary(encodeEventChunk(key, encodedTexts.slice(from, to))) as unknown as string);
      from = to;
    }
  }

  /** Removes chunks that end at or before `seq`, but never the last one. */
  trim(stream: string, seq: number): void {
    const keys = [...this.#table.getKeys(keyRange(stream))];
    keys.forEach((key, i) => {
      const next = keys[i + 1];
      if (next !== undefined && firstSeqOf(next) - 1 <= seq) void this.#table.remove(key);
    });
  }

  /** Removes all chunks of a stream. */
  remove(stream: string): void {
    for (const key of [...this.#table.getKeys(keyRange(stream))]) void this.#table.remove(key);
  }

  /** The names of the streams that have chunks, in order. */
  streams(): string[] {
    const streams: string[] = [];
    for (let start = ''; ;) {
      const [key] = this.#table.getKeys({ start, limit: 1 });
      if (key === undefined) return streams;
      const stream = key.slice(0, key.indexOf(' '));
      streams.push(stream);
      start = `${stream}!`;
    }
  }
}

/** How many of the events from index `from` on are stored in one chunk: at least one. */
function countInChunk(
  encodedTexts: readonly EncodedText[],
  from: number,
  { chunkEvents, chunkBytes }: ChunkBounds,
): number {
  let bytes = 0;
  let count = 0;
  for (const { start, end } of encodedTexts.slice(from, from + chunkEvents)) {
    bytes += end - start;
    if (count > 0 && bytes > chunkBytes) break;
    count++;
  }
  return count;
}

function chunkKey(stream: string, firstSeq: number): string {
  return `${stream} ${String(firstSeq).padStart(16, '0')}`;
}

function firstSeqOf(key: string): number {
  return Number(key.slice(key.indexOf(' ') + 1));
}

function keyRange(stream: string): { start: string; end: string } {
  return { start: `${stream} `, end: `${stream}!` };
}
