import type { Member } from './member.ts';

/** Milliseconds for which frames are collected. */
const FLUSH_MS = 50;

/** A frame that a member sends to the others in its room. */
export interface OutgoingFrame {
  readonly kind: 'frame' | 'typing';
  readonly from: Member;
  readonly frame: string;
}

/** Collects frames for 50 ms, keeps the latest of each user and key, and then sends them. */
export class LatestFrames {
  readonly #send: (frame: OutgoingFrame) => void;
  readonly #frames = new Map<string, OutgoingFrame>();
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (frame: OutgoingFrame) => void) {
    this.#send = send;
  }

  /** @param key what the frame is about, e.g. the cursor: a later frame of the same user and key replaces this one */
  add(key: string, frame: OutgoingFrame): void {
    this.#frames.set(`${frame.from.connection.userId}\n${key}`, frame);
    this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  /** Sends the collected frames now. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const frames = [...this.#frames.values()];
    this.#frames.clear();
    for (const frame of frames) this.#send(frame);
  }
}
