import type { Welcome } from '../../model/frames.ts';

/** The most frames that are kept for tabs that were away for a moment. */
const MAX_FRAMES = 500;
/** Kept free in a message for the id that replaces that of the tab. */
const ID_BYTES = 20;

/** How a socket begins: its position, and its first frames. */
export interface Beginning {
  readonly seq: number;
  readonly texts: readonly string[];
}

/** The events of a connection since its welcome, as far as a tab that joins it may need them. */
export class Stream {
  readonly welcome: Welcome;
  readonly #frames: { readonly seq: number; readonly text: string }[] = [];
  /** The position from which on all frames are kept. */
  #floor: number;
  #head: number;

  /** @param since the position that the connection was opened with; null if with none */
  constructor(welcome: Welcome, since: number | null) {
    this.welcome = welcome;
    this.#floor = welcome.recovered && since !== null ? since : welcome.seq;
    this.#head = welcome.seq;
  }

  /** Adds a frame with a position. */
  add(seq: number, text: string): void {
    this.#head = Math.max(this.#head, seq);
    this.#frames.push({ seq, text });
    if (this.#frames.length > MAX_FRAMES) this.#floor = this.#frames.shift()?.seq ?? this.#floor;
  }

  /**
   * Begins a socket with this address: at its position if all frames after that are kept or still to come, else at the end,
   * with a welcome that says so.
   */
  begin(url: string): Beginning {
    const { epoch, since } = positionOf(url);
    const recovered = epoch === this.welcome.epoch && since !== null && since >= this.#floor && since <= this.#head;
    const maxMessageBytes = this.welcome.maxMessageBytes - ID_BYTES;
    const welcome = JSON.stringify({ type: 'welcome', data: { ...this.welcome, recovered, seq: this.#head, maxMessageBytes } });
    if (!recovered) return { seq: this.#head, texts: [welcome] };
    return { seq: since, texts: [welcome, ...this.#frames.filter(({ seq }) => seq > since).map(({ text }) => text)] };
  }
}

/** The position in the address of a socket. */
export function positionOf(url: string): { readonly epoch: string | null; readonly since: number | null } {
  const query = new URLSearchParams(url.split('?')[1]);
  const since = query.get('since');
  return { epoch: query.get('epoch'), since: since === null ? null : Number(since) };
}
