/** The browser's storage for one room and user. Works, without memory, where the browser refuses storage. */
export class RoomStorage {
  readonly #prefix: string;

  constructor(publishableKey: string, roomId: string, userId: string | null) {
    this.#prefix = `collab:${publishableKey.slice(0, 48)}:${roomId}:${userId ?? ''}:`;
  }

  /** The value under a name; null if there is none. */
  read(name: string): unknown {
    try {
      const text = localStorage.getItem(this.#prefix + name);
      return text === null ? null : (JSON.parse(text) as unknown);
    } catch {
      return null;
    }
  }

  /** Replaces the value; null deletes it. Returns whether the browser kept it. */
  write(name: string, value: unknown): boolean {
    try {
      if (value === null) localStorage.removeItem(this.#prefix + name);
      else localStorage.setItem(this.#prefix + name, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  }
}
