/** Lines of one message with one error that are written within `WINDOW_MS`. */
const AT_MOST = 10;
const WINDOW_MS = 60_000;
/** Messages with errors that are counted at most; beyond them the counts begin anew. */
const MAX_KINDS = 1_000;

interface Count {
  since: number;
  lines: number;
}

/**
 * Limits lines that repeat one error: while an engine or a disk is gone, each environment and each task of it fails
 * some times a second for the same reason, and thousands of equal lines hide the others.
 */
export class RepeatedErrors {
  readonly #counts = new Map<string, Count>();
  readonly #now: () => number;

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Whether a line may be written: of those with the same message and the same text of `err`, 10 in a minute. `left`
   * is how many were left out since the last one that was written; null if this line is to be left out.
   */
  admit(err: unknown, message: string): { readonly left: number } | null {
    if (!(err instanceof Error)) return { left: 0 };
    const kind = `${message}\n${err.name}\n${err.message}`;
    const now = this.#now();
    const count = this.#counts.get(kind);
    if (count === undefined || now - count.since >= WINDOW_MS) {
      if (this.#counts.size >= MAX_KINDS) this.#counts.clear();
      this.#counts.set(kind, { since: now, lines: 1 });
      return { left: Math.max(0, (count?.lines ?? 0) - AT_MOST) };
    }
    count.lines += 1;
    return count.lines > AT_MOST ? null : { left: 0 };
  }
}
