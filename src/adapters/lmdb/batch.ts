/** One group commit as it stands in the log: what was written, and the events with their positions. */
export interface Batch {
  readonly writes: readonly Write[];
  readonly events: readonly LoggedEvent[];
}

export interface Write {
  readonly partition: string;
  readonly key: string;
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

/** `[environmentId, seq, length]` and `[partition, key, offset, length]` (length -1: deleted), in UTF-16 units of the body. */
type Header = [events: [string, number, number][], writes: [string, string, number, number][]];

/**
 * A batch as bytes: one line of JSON with names and lengths, then every text end to end in UTF-8. A record that is the
 * tail of its event (the usual case: `data` comes last) is not written again but points into it.
 */
export function encodeBatch(batch: Batch): Buffer {
  const starts: number[] = [];
  const body: string[] = [];
  const header: Header = [[], []];
  let length = 0;
  for (const { environmentId, seq, text } of batch.events) {
    header[0].push([environmentId, seq, text.length]);
    starts.push(length);
    body.push(text);
    length += text.length;
  }
  for (const { partition, key, value, event } of batch.writes) {
    if (value === undefined) {
      header[1].push([partition, key, 0, -1]);
      continue;
    }
    const tail = event === undefined ? undefined : tailOffset(batch.events[event]?.text ?? '', value);
    if (event !== undefined && tail !== undefined) {
      header[1].push([partition, key, (starts[event] ?? 0) + tail, value.length]);
      continue;
    }
    header[1].push([partition, key, length, value.length]);
    body.push(value);
    length += value.length;
  }
  return Buffer.from(`${JSON.stringify(header)}\n${body.join('')}`);
}

export function decodeBatch(bytes: Uint8Array): Batch {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  const headerEnd = text.indexOf('\n');
  const [events, writes] = JSON.parse(text.slice(0, headerEnd)) as Header;
  const start = headerEnd + 1;
  let offset = start;
  return {
    events: events.map(([environmentId, seq, length]) => {
      const event = { environmentId, seq, text: text.slice(offset, offset + length) };
      offset += length;
      return event;
    }),
    writes: writes.map(([partition, key, at, length]) => ({
      partition,
      key,
      value: length < 0 ? undefined : text.slice(start + at, start + at + length),
    })),
  };
}

/** Where `value` stands inside its event, `…,"data":VALUE}` or `…,"data":{…,"comment":VALUE}}`, if it does. */
function tailOffset(event: string, value: string): number | undefined {
  for (let braces = 1; braces <= 2; braces++) {
    const offset = event.length - braces - value.length;
    if (offset > 0 && event.startsWith(value, offset)) return offset;
  }
  return undefined;
}
