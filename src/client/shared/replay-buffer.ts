import type { Welcome } from '../../model/frames.ts';

/** The most frames that are kept for tabs that were away for a moment. */
const MAX_FRAMES = 500;
/** Kept free in a message for the id that replaces that of the tab. */
const ID_BYTES = 20;

/** The position at which a socket starts, and its first frames. */
export interface ReplayStart {
  readonly seq: number;
  readonly texts: readonly string[];
}

/** The frames of a connection since its welcome that a tab which joins it may need. */
export class ReplayBuffer {
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
   * The start of a socket with this URL: at its `since` if no frame after that is missing, otherwise at the current
   * position with `recovered: false`.
   */
  startAt(url: string): ReplayStart {
    const { epoch, since } = positionOf(url);
    const recovered = epoch === this.welcome.epoch && since !== null && since >= this.#floor && since <= this.#head;
    const maxMessageBytes = this.welcome.maxMessageBytes - ID_BYTES;
    const welcome = JSON.stringify({
      type: 'welcome',
      data: { ...this.welcome, recovered, seq: this.#head, maxMessageBytes },
    });
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
