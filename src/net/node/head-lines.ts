/** The names that the further lines of a value may have: those of the constants that hold several (net/response-headers.ts). */
const FURTHER_NAMES = new Set([
  'accept-ranges', 'access-control-expose-headers', 'cache-control', 'content-length', 'content-security-policy',
  'cross-origin-resource-policy', 'etag', 'referrer-policy', 'vary', 'x-accel-buffering', 'x-content-type-options',
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

  /** Begins the head. `status`: the code and its reason phrase. */
  start(status: string): void {
    const space = status.indexOf(' ');
    this.status = Number(space < 0 ? status : status.slice(0, space));
    this.reason = space < 0 ? '' : status.slice(space + 1);
    this.started = true;
  }

  /**
   * Adds a header whose value may hold further lines. Returns the begin of the body if the value ends the head, else null.
   *
   * @throws {Error} if a further line is not of those that the server itself writes: the value then comes from elsewhere
   */
  add(name: string, value: string): string | null {
    if (!value.includes('\r\n')) return this.#push(name, value);
    const end = value.indexOf('\r\n\r\n');
    const lines = (end < 0 ? value : value.slice(0, end)).split('\r\n');
    const endsHead = end >= 0 || lines.at(-1) === '';
    this.#push(name, lines[0] ?? '');
    for (const line of lines.slice(1, end < 0 && endsHead ? -1 : undefined)) {
      const colon = line.indexOf(': ');
      const further = line.slice(0, colon);
      if (!FURTHER_NAMES.has(further.toLowerCase())) throw new Error(`a value of ${name} has a line break`);
      this.#push(further, line.slice(colon + 2));
    }
    if (!endsHead) return null;
    // The native core adds a line break to the value.
    return end < 0 ? '' : `${value.slice(end + 4)}\r\n`;
  }

  /** Returns the lines, and is not started any more. */
  take(): string[] {
    this.started = false;
    return this.#lines;
  }

  #push(name: string, value: string): null {
    if (name === 'Connection' && value === 'close') this.closes = true;
    this.#lines.push(name, value);
    return null;
  }
}
