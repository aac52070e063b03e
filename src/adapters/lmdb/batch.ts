/** What a group of transactions wants to write: each record's last value, and the events with their positions. */
export interface Batch {
  /** partition -> key -> write */
  readonly writes: ReadonlyMap<string, ReadonlyMap<string, Write>>;
  readonly events: readonly LoggedEvent[];
}

export interface Write {
  /** undefined: deleted. */
  readonly value: string | undefined;
  /** Index in the batch of an event that may hold the value as its tail. */
  readonly event?: number | undefined;
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

/** Per event `[environmentId, seq, bytes]`; per partition its name and `key, offset, bytes` in turn (bytes -1: deleted), offsets from the body's start. */
type Header = [events: [string, number, number][], writes: [string, (string | number)[]][]];

const PREFIX_BYTES = 4;

export function textOf({ bytes, start, end }: Slice): string {
  return bytes.toString('utf8', start, end);
}

/**
 * A batch as bytes: the length of the header (32 bits, little endian), the header as JSON, then every text end to end
 * in UTF-8. A record that is the tail of its event (the usual case: `data` comes last) is not written again.
 */
export function encodeBatch(batch: Batch): EncodedBatch {
  const texts: string[] = [];
  const header: Header = [[], []];
  const starts: number[] = [];
  let size = 0;
  const add = (text: string): number => {
    const bytes = Buffer.byteLength(text);
    texts.push(text);
    size += bytes;
    return bytes;
  };
  for (const { environmentId, seq, text } of batch.events) {
    starts.push(size);
    header[0].push([environmentId, seq, add(text)]);
  }
  for (const [partition, writes] of batch.writes) {
    const places: (string | number)[] = [];
    header[1].push([partition, places]);
    for (const [key, { value, event }] of writes) {
      const holder = event === undefined ? undefined : header[0][event];
      const braces = value === undefined || event === undefined ? 0 : bracesAfter(batch.events[event]?.text ?? '', value);
      if (value === undefined) {
        places.push(key, 0, -1);
      } else if (event !== undefined && holder !== undefined && braces > 0) {
        const bytes = Buffer.byteLength(value);
        places.push(key, (starts[event] ?? 0) + holder[2] - braces - bytes, bytes);
      } else {
        const offset = size;
        places.push(key, offset, add(value));
      }
    }
  }
  return slices(write(header, texts, size), header);
}

export function decodeBatch(bytes: Buffer): EncodedBatch {
  const bodyStart = PREFIX_BYTES + bytes.readUInt32LE(0);
  return slices(bytes, JSON.parse(bytes.toString('utf8', PREFIX_BYTES, bodyStart)) as Header);
}

function write(header: Header, texts: readonly string[], size: number): Buffer {
  const head = JSON.stringify(header);
  const headBytes = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafeSlow(PREFIX_BYTES + headBytes + size);
  bytes.writeUInt32LE(headBytes);
  let offset = PREFIX_BYTES + bytes.write(head, PREFIX_BYTES);
  for (const text of texts) offset += bytes.write(text, offset);
  return bytes;
}

function slices(bytes: Buffer, [events, writes]: Header): EncodedBatch {
  const bodyStart = PREFIX_BYTES + bytes.readUInt32LE(0);
  let offset = bodyStart;
  return {
    bytes,
    events: events.map(([environmentId, seq, length]) => {
      const start = offset;
      offset += length;
      return { environmentId, seq, slice: { bytes, start, end: offset } };
    }),
    writes: writes.map(([partition, places]) => ({ partition, writes: placed(bytes, bodyStart, places) })),
  };
}

function placed(bytes: Buffer, bodyStart: number, places: readonly (string | number)[]): EncodedPartition['writes'] {
  const writes: { key: string; slice: Slice | undefined }[] = [];
  for (let i = 0; i < places.length; i += 3) {
    const start = bodyStart + (places[i + 1] as number);
    const length = places[i + 2] as number;
    writes.push({ key: places[i] as string, slice: length < 0 ? undefined : { bytes, start, end: start + length } });
  }
  return writes;
}

/** How many braces follow `value` inside its event, `…,"data":VALUE}` or `…,"data":{…,"comment":VALUE}}`; 0: not its tail. */
function bracesAfter(event: string, value: string): number {
  for (let braces = 1; braces <= 2; braces++) {
    const offset = event.length - braces - value.length;
    if (offset > 0 && event.startsWith(value, offset)) return braces;
  }
  return 0;
}
