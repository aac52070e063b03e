import type { Arena } from './arena.ts';

/** The writes of a group of transactions: the last value of each record, and the events with their positions. */
export interface Batch {
  /** partition -> key -> value; null: deleted */
  readonly writes: ReadonlyMap<string, ReadonlyMap<string, string | null>>;
  readonly events: readonly LoggedEvent[];
}

/** An event, or the end of a stream. */
export interface LoggedEvent {
  readonly stream: string;
  /** 1 or more; `STREAM_END` with an empty text for the end. */
  readonly seq: number;
  readonly text: string;
}

/**
 * A text inside the bytes of a batch. It is decoded only when it is read and stays outside of the JavaScript heap until
 * then: otherwise the garbage collector would spend most of its time on the content of the memtable.
 */
export interface EncodedText {
  readonly bytes: Buffer;
  readonly start: number;
  /** Less than `start`: there is no text, the record is deleted. */
  readonly end: number;
  /** Position of the commit that wrote it; 0 until the store view has applied that commit. */
  position: number;
}

/** A batch as it is stored in the log. */
export interface EncodedBatch {
  readonly bytes: Buffer;
  readonly writes: readonly EncodedPartition[];
  readonly events: readonly { readonly stream: string; readonly seq: number; readonly encoded: EncodedText }[];
}

/** The writes of a batch to one partition. */
export interface EncodedPartition {
  readonly partition: string;
  readonly keys: readonly string[];
  /** The value of each key. */
  readonly encodedTexts: readonly EncodedText[];
}

/** Stored in place of an event's position where the stream ends. Positions of events begin at 1. */
export const STREAM_END = -1;

/** Bytes reserved before a batch for the frame that commit-log.ts writes. */
export const FRAME_BYTES = 8;
const PREFIX_BYTES = FRAME_BYTES + 4;

/** The most bytes of UTF-8 per character (code unit) of a text. */
export const MAX_BYTES_PER_CHAR = 3;
/** The most bytes of a batch besides names, keys and texts. */
export const BATCH_FRAME_BYTES = PREFIX_BYTES + 2 * 17;
/**
 * The most bytes of the header for an event or write besides its stream or key: lengths and positions have at most 16
 * digits.
 */
export const ENTRY_BYTES = 2 * 17 + 1;

/**
 * Returns at most how many bytes `encodeBatch` makes of a batch: the exact size of its texts, and the largest of its
 * header.
 */
export function largestSizeOf({ writes, events }: Batch): number {
  let bytes = BATCH_FRAME_BYTES;
  for (const { stream, text } of events) bytes += ENTRY_BYTES + stream.length + Buffer.byteLength(text);
  for (const [partition, values] of writes) {
    bytes += ENTRY_BYTES + partition.length;
    for (const [key, value] of values)
      bytes += ENTRY_BYTES + key.length + (value === null ? 0 : Buffer.byteLength(value));
  }
  return bytes;
}

/** Decodes an encoded text; undefined if the record is deleted. */
export function textOf({ bytes, start, end }: EncodedText): string | undefined {
  return end < start ? undefined : bytes.toString('utf8', start, end);
}

/**
 * Encodes a batch: space for a frame, the length of the header (32 bits), the header, then all texts in UTF-8 without
 * separators. The header is ASCII, one field per line: the number of events, per event its stream, `seq` and length;
 * the number of partitions, per partition its name and the number of writes, per write its key and length. Lengths are
 * in bytes; -1 stands for a deletion.
 */
export function encodeBatch(batch: Batch, arena: Arena): EncodedBatch {
  const texts: string[] = [];
  for (const { text } of batch.events) texts.push(text);
  for (const values of batch.writes.values())
    for (const value of values.values()) if (value !== null) texts.push(value);
  const body = texts.join('');
  const bodyBytes = Buffer.byteLength(body);
  // Most bodies are ASCII: their lengths in characters and in bytes are equal and need not be computed again.
  const ascii = bodyBytes === body.length;
  const bytesOf = (text: string): number => (ascii ? text.length : Buffer.byteLength(text));

  const header: (string | number)[] = [batch.events.length];
  for (const { stream, seq, text } of batch.events) header.push(stream, seq, bytesOf(text));
  header.push(batch.writes.size);
  for (const [partition, values] of batch.writes) {
    header.push(partition, values.size);
    for (const [key, value] of values) header.push(key, value === null ? -1 : bytesOf(value));
  }
  const head = header.join('\n');
  const bytes = arena.allocate(PREFIX_BYTES + head.length + bodyBytes);
  bytes.writeUInt32LE(head.length, FRAME_BYTES);
  bytes.write(head, PREFIX_BYTES, 'latin1');
  bytes.write(body, PREFIX_BYTES + head.length, ascii ? 'latin1' : 'utf8');
  return locateTexts(bytes, PREFIX_BYTES + head.length, header);
}

/** Decodes the header of a batch that `encodeBatch` made; the texts stay in `bytes`. */
export function decodeBatch(bytes: Buffer): EncodedBatch {
  const headEnd = PREFIX_BYTES + bytes.readUInt32LE(FRAME_BYTES);
  return locateTexts(bytes, headEnd, bytes.toString('latin1', PREFIX_BYTES, headEnd).split('\n'));
}

/** Locates the texts after `headEnd` by the fields of the header. */
function locateTexts(bytes: Buffer, headEnd: number, header: readonly (string | number)[]): EncodedBatch {
  let field = 0;
  const text = (): string => String(header[field++]);
  const number = (): number => Number(header[field++]);
  let end = headEnd;
  const encodedText = (length: number): EncodedText => {
    const start = end;
    if (length < 0) return { bytes, start, end: start - 1, position: 0 };
    end += length;
    return { bytes, start, end, position: 0 };
  };
  const events: { stream: string; seq: number; encoded: EncodedText }[] = [];
  for (let left = number(); left > 0; left--)
    events.push({ stream: text(), seq: number(), encoded: encodedText(number()) });
  const writes: EncodedPartition[] = [];
  for (let partitions = number(); partitions > 0; partitions--) {
    const partition = text();
    const keys: string[] = [];
    const encodedTexts: EncodedText[] = [];
    for (let left = number(); left > 0; left--) {
      keys.push(text());
      encodedTexts.push(encodedText(number()));
    }
    writes.push({ partition, keys, encodedTexts });
  }
  return { bytes, events, writes };
}
