/** Milliseconds after which a user that has not repeated that it types counts as having stopped. */
const TYPING_MS = 6_000;

interface TypingUser {
  readonly userId: string;
  readonly expiresAt: number;
  /** The frame that announces the end. */
  readonly stopFrame: string;
}

/**
 * The users who are typing in a room. Each worker that has sockets there keeps them, so that typing ends even if a
 * process crashes.
 */
export class TypingUsers {
  /** By user and thread. */
  readonly #users = new Map<string, TypingUser>();

  /**
   * Records that a user types or has stopped.
   *
   * @param threadId null for a new thread
   * @param stopFrame the frame that announces the end if the user does not; null if the user has stopped
   * @param now `Clock.monotonic`
   */
  set(userId: string, threadId: string | null, stopFrame: string | null, now: number): void {
    const key = `${userId}\n${threadId ?? ''}`;
    if (stopFrame === null) this.#users.delete(key);
    else this.#users.set(key, { userId, expiresAt: now + TYPING_MS, stopFrame });
  }

  /** Removes a user who has left. */
  remove(userId: string): void {
    for (const [key, user] of this.#users) if (user.userId === userId) this.#users.delete(key);
  }

  /**
   * Removes the users whose time has passed and returns the frames that announce their end. `now` is `Clock.monotonic`.
   */
  expire(now: number): string[] {
    const frames: string[] = [];
    for (const [key, { expiresAt, stopFrame }] of this.#users) {
      if (expiresAt > now) continue;
      this.#users.delete(key);
      frames.push(stopFrame);
    }
    return frames;
  }
}
