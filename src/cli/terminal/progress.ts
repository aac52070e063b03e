/** Where progress is shown. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** The first word of progress comes when a work takes longer than this. */
const FIRST_MS = 1_000;
/** A terminal's line is written anew, a file gets another line. */
const EVERY_MS = { terminal: 200, file: 5_000 };

/** How far a long work is, on standard error: one line that changes on a terminal, now and then a line elsewhere. Silent while it is quick. */
export class Progress {
  readonly #output: ProgressOutput;
  #shownAt = performance.now() + FIRST_MS - EVERY_MS.terminal;
  #shown = false;

  constructor(output: ProgressOutput = process.stderr) {
    this.#output = output;
    if (output.isTTY !== true) this.#shownAt = performance.now() + FIRST_MS - EVERY_MS.file;
  }

  /** Says how far it is; cheap to call often. `text` is made only when it is shown. */
  say(text: () => string): void {
    const terminal = this.#output.isTTY === true;
    const now = performance.now();
    if (now - this.#shownAt < (terminal ? EVERY_MS.terminal : EVERY_MS.file)) return;
    this.#shownAt = now;
    this.#shown = true;
    this.#output.write(terminal ? `\r\u001b[K${text()}` : `${text()}\n`);
  }

  /** Clears the line. */
  end(): void {
    if (this.#shown && this.#output.isTTY === true) this.#output.write('\r\u001b[K');
  }
}

/** A number of bytes for people: `48 kB`, `12.3 MB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(bytes < 100_000_000 ? 1 : 0)} MB`;
}
