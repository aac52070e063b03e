import { createHash } from 'node:crypto';

/** The recent comments of a user. */
interface Writing {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly digest: string;
}

/** The most users that are remembered, and the most texts of one. */
const MAX_USERS = 10_000;
const MAX_TEXTS = 1_000;
const DAY_MS = 24 * 3_600_000;

/** The comments of users in the last 24 hours, in the memory of one process. */
export class History {
  readonly #writings = new Map<string, Writing[]>();

  /** Adds a text of a user, by its digest. */
  add(user: string, digest: string, now: number): void {
    const recent = (this.#writings.get(user) ?? []).filter(({ at }) => now - at < DAY_MS).slice(1 - MAX_TEXTS);
    // The last entry of the map is the user who wrote last.
    this.#writings.delete(user);
    this.#writings.set(user, [...recent, { at: now, digest }]);
    const [oldest] = this.#writings.keys();
    if (this.#writings.size > MAX_USERS && oldest !== undefined) this.#writings.delete(oldest);
  }

  /** How often a user has written something in the last minutes; only the text with this digest, if one is given. */
  count(user: string, minutes: number, now: number, digest?: string): number {
    const since = now - minutes * 60_000;
    return (this.#writings.get(user) ?? []).filter(
      (writing) => writing.at > since && (digest === undefined || writing.digest === digest),
    ).length;
  }
}

/** Identifies a text. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
