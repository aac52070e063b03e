import type { Arena } from './arena.ts';

/** What a group of transactions wants to write: each record's last value, and the events with their positions. */
export interface Batch {
  /** partition -> key -> value; undefined: deleted */
  readonly writes: ReadonlyMap<string, ReadonlyMap<string, string | undefined>>;
  readonly events: readonly LoggedEvent[];
}

export interface LoggedEvent {
  readonly environmentId: string;
  readonly seq: number;
  readonly text: string;
}

/**
 * A text inside the bytes of a batch. It stays there, outside of the JavaScript heap, until somebody asks: what the
 * log holds beyond the tree would otherwise be most of what the garbage collector moves about.
 */
export interface Slice {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/** A batch as it stands in the log. */
export interface EncodedBatch {
  readonly bytes: Buffer;
  readonly writes: readonly EncodedPartition[];
  readonly events: readonly { readonly environmentId: string; readonly seq: number; readonly slice: Slice }[];
}

export interface EncodedPartition {
  readonly partition: string;
  /** A write without slice deletes. */
  readonly writes: readonly { readonly key: string; readonly slice: Slice | undefined }[];
}

/** Room for the frame that commit-log.ts writes. */
const FRAME_BYTES = 12;
const PREFIX_BYTES = FRAME_BYTES + 4;

export function textOf({ bytes, start, end }: Slice): string {
  return bytes.toString('utf8', start, end);
}

/**
 * A batch as bytes: room for a frame, the length of the header (32 bits), the header, then every text end to end in UTF-8.
 * The header is ASCII, one field a line: the number of events, per event its environment, `seq` and bytes; the number
 * of partitions, per partition its name, the number of writes, and per write its key and bytes (-1: deleted).
 */
export function encodeBatch(batch: Batch, arena: Arena): EncodedBatch {
  const texts: string[] = [];
  for (const { text } of batch.events) texts.push(text);
  for (const values of batch.writes.values()) for (const value of values.values()) if (value !== undefined) texts.push(value);
  const body = texts.join('');
  const bodyBytes = Buffer.byteLength(body);
  // In ASCII, which most of it is, a unit is a byte, and nothing needs to be counted again.
  const ascii = bodyBytes === body.length;
  const bytesOf = (text: string): number => (ascii ? text.length : Buffer.byteLength(text));

  const header: (string | number)[] = [batch.events.length];
  for (const { environmentId, seq, text } of batch.events) header.push(environmentId, seq, bytesOf(text));
  header.push(batch.writes.size);
  for (const [partition, values] of batch.writes) {
    header.push(partition, values.size);
    for (const [key, value] of values) header.push(key, value === undefined ? -1 : bytesOf(value));
  }
  const head = header.join('\n');
  const bytes = arena.take(PREFIX_BYTES + head.length + bodyBytes);
  bytes.writeUInt32LE(head.length, FRAME_BYTES);
  bytes.write(head, PREFIX_BYTES, 'latin1');
  bytes.write(body, PREFIX_BYTES + head.length, ascii ? 'latin1' : 'utf8');
  return locate(bytes, PREFIX_BYTES + head.length, header);
}

export function decodeBatch(bytes: Buffer): EncodedBatch {
  const headEnd = PREFIX_BYTES + bytes.readUInt32LE(FRAME_BYTES);
  return locate(bytes, headEnd, bytes.toString('latin1', PREFIX_BYTES, headEnd).split('\n'));
}

/** What a header says of the bytes behind it. */
function locate(bytes: Buffer, headEnd: number, header: readonly (string | number)[]): EncodedBatch {
  let field = 0;
  const text = (): string => String(header[field++]);
  const number = (): number => Number(header[field++]);
  let end = headEnd;
  const slice = (length: number): Slice => {
    const start = end;
    end += length;
    return { bytes, start, end };
  };
  const events: { environmentId: string; seq: number; slice: Slice }[] = [];
  for (let left = number(); left > 0; left--) events.push({ environmentId: text(), seq: number(), slice: slice(number()) });
  const writes: EncodedPartition[] = [];
  for (let partitions = number(); partitions > 0; partitions--) {
    const partition = text();
    const entries: { key: string; slice: Slice | undefined }[] = [];
    for (let left = number(); left > 0; left--) {
      const key = text();
      const length = number();
      entries.push({ key, slice: length < 0 ? undefined : slice(length) });
    }
    writes.push({ partition, writes: entries });
  }
  return { bytes, events, writes };
}
