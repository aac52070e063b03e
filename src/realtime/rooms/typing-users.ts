/** Milliseconds after which somebody who doesn't say that they still type counts as having stopped. */
export const TYPING_MS = 6_000;

interface Typist {
  readonly userId: string;
  readonly until: number;
  /** Tells that they have stopped. */
  readonly stop: string;
}

/** Who types in a room: kept by each worker that has sockets there, so that nobody types for ever, whatever crashes. */
export class TypingUsers {
  readonly #typists = new Map<string, Typist>();

  /**
   * Notes what one said.
   *
   * @param place where the user types, unique in the room
   * @param stop the frame that tells that they have stopped; null when they have
   */
  note(place: string, userId: string, stop: string | null, now: number): void {
    if (stop === null) this.#typists.delete(place);
    else this.#typists.set(place, { userId, until: now + TYPING_MS, stop });
  }

  /** Forgets a user who has left. */
  forget(userId: string): void {
    for (const [place, typist] of this.#typists) if (typist.userId === userId) this.#typists.delete(place);
  }

  /** The frames that tell of those whose time is up. */
  expire(now: number): string[] {
    const frames: string[] = [];
    for (const [place, { until, stop }] of this.#typists) {
      if (until > now) continue;
      this.#typists.delete(place);
      frames.push(stop);
    }
    return frames;
  }
}
