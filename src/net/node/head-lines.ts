/**
 * The names that the further lines of a value may have: those of the constants that hold several
 * (net/response-headers.ts).
 */
const FURTHER_NAMES = new Set([
  'accept-ranges',
  'access-control-expose-headers',
  'cache-control',
  'content-length',
  'content-security-policy',
  'cross-origin-resource-policy',
  'etag',
  'keep-alive',
  'referrer-policy',
  'vary',
  'x-accel-buffering',
  'x-content-type-options',
]);

/** The head of a response while it is written. */
export class HeadLines {
  status = 200;
  reason = 'OK';
  /** Whether a status was written, and the lines have not been taken since. */
  started = false;
  /** Whether the head says `Connection: close`. */
  closes = false;
  #lines: string[] = [];

  /** Names and values in turn. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Begins the head. `status`: the code and its reason phrase, and header lines of the server's own. */
  start(status: string): void {
    const [line = '', ...further] = status.split('\r\n');
    const space = line.indexOf(' ');
    this.status = Number(space < 0 ? line : line.slice(0, space));
    this.reason = space < 0 ? '' : line.slice(space + 1);
    this.started = true;
    for (const other of further) this.#pushFurther('the status', other);
  }

  /**
   * Adds a header whose value may hold further lines. Returns the beginning of the body if the value ends the head,
   * else null.
   *
   * @throws {Error} if a further line is not of those that the server itself writes: the value then comes from
   *   elsewhere
   */
  add(name: string, value: string): string | null {
    if (!value.includes('\r\n')) return this.#push(name, value);
    const end = value.indexOf('\r\n\r\n');
    const lines = (end < 0 ? value : value.slice(0, end)).split('\r\n');
    const endsHead = end >= 0 || lines.at(-1) === '';
    this.#push(name, lines[0] ?? '');
    for (const line of lines.slice(1, end < 0 && endsHead ? -1 : undefined))
      this.#pushFurther(`a value of ${name}`, line);
    if (!endsHead) return null;
    // The native core adds a line break to the value.
    return end < 0 ? '' : `${value.slice(end + 4)}\r\n`;
  }

  /** Returns the lines and resets the head. A connection that is closed announces no time for which it stays open. */
  take(): string[] {
    this.started = false;
    const kept = this.closes ? this.#lines.indexOf('Keep-Alive') : -1;
    return kept < 0 ? this.#lines : this.#lines.toSpliced(kept, 2);
  }

  #pushFurther(of: string, line: string): void {
    const colon = line.indexOf(': ');
    const name = line.slice(0, colon);
    if (!FURTHER_NAMES.has(name.toLowerCase())) throw new Error(`${of} has a line break`);
    this.#push(name, line.slice(colon + 2));
  }

  #push(name: string, value: string): null {
    if (name === 'Connection' && value === 'close') this.closes = true;
    this.#lines.push(name, value);
    return null;
  }
}
