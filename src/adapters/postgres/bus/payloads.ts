import { MAX_WAITING } from '../../../ports/bus.ts';

/** Bytes of a part: PostgreSQL allows fewer than 8 000 for a payload, which names sender, kind and part as well. */
const MAX_PART_BYTES = 7_900;
/** Parts of the longest message: JSON may make 6 bytes of a character. */
const MAX_PARTS = Math.ceil((6 * MAX_WAITING) / MAX_PART_BYTES);

/** `announce`: the streams that have grown; `publish`: publications; `beacon`: whether the sender hears itself. */
export type MessageKind = 'announce' | 'publish' | 'beacon';

/** A message of the bus. */
export interface Message {
  readonly sender: string;
  readonly kind: MessageKind;
  readonly text: string;
}

/** The payloads that carry a message: `sender kind part/parts text`. */
export function payloadsOf({ sender, kind, text }: Message): string[] {
  const bytes = Buffer.from(text);
  const parts: string[] = [];
  for (let start = 0; start < bytes.length || parts.length === 0;) {
    let end = Math.min(start + MAX_PART_BYTES, bytes.length);
    // Not within a character.
    while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
    parts.push(bytes.toString('utf8', start, end));
    start = end;
  }
  return parts.map((part, i) => `${sender} ${kind} ${i}/${parts.length} ${part}`);
}

/** Puts the payloads of messages together. Those of a message arrive one after another. */
export class Assembler {
  /** The parts of an incomplete message, by its sender. */
  readonly #parts = new Map<string, string[]>();

  /** Returns the message that the payload completes; null if there is none. */
  add(payload: string): Message | null {
    const [start = '', sender = '', kind, part, count] = /^(\S+) (\S+) (\d+)\/(\d+) /.exec(payload) ?? [];
    if (kind !== 'announce' && kind !== 'publish' && kind !== 'beacon') return null;
    const text = payload.slice(start.length);
    if (count === '1') return { sender, kind, text };
    const parts = part === '0' ? [] : this.#parts.get(sender);
    // The beginning was sent while nobody listened.
    if (parts?.length !== Number(part) || Number(count) > MAX_PARTS) return null;
    parts.push(text);
    this.#parts.set(sender, parts);
    if (parts.length < Number(count)) return null;
    this.#parts.delete(sender);
    return { sender, kind, text: parts.join('') };
  }

  /** Forgets incomplete messages, whose rest will not arrive. */
  clear(): void {
    this.#parts.clear();
  }
}
