/** Where progress is written. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Nothing is shown before this time. */
const FIRST_MS = 1_000;
/** How often progress is shown. A terminal's line is overwritten; a file gets another line. */
const INTERVAL_MS = { terminal: 200, file: 5_000 };

/**
 * Shows the progress of a long task on standard error: one changing line on a terminal, otherwise a line every few
 * seconds.
 */
export class Progress {
  readonly #output: ProgressOutput;
  #shownAt = performance.now() + FIRST_MS - INTERVAL_MS.terminal;
  #shown = false;

  constructor(output: ProgressOutput = process.stderr) {
    this.#output = output;
    if (output.isTTY !== true) this.#shownAt = performance.now() + FIRST_MS - INTERVAL_MS.file;
  }

  /** Reports progress. Cheap to call often: `text` is only called when it is shown. */
  update(text: () => string): void {
    const terminal = this.#output.isTTY === true;
    const now = performance.now();
    if (now - this.#shownAt < (terminal ? INTERVAL_MS.terminal : INTERVAL_MS.file)) return;
    this.#shownAt = now;
    this.#shown = true;
    this.#output.write(terminal ? `\r\u001b[K${text()}` : `${text()}\n`);
  }

  /** Clears the line on a terminal. */
  end(): void {
    if (this.#shown && this.#output.isTTY === true) this.#output.write('\r\u001b[K');
  }
}

/** Formats a number of bytes: `48 kB`, `12.3 MB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(bytes < 100_000_000 ? 1 : 0)} MB`;
}
