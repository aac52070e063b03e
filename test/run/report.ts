import type { FileResult } from './job.ts';
import { childrenCpuSeconds } from './processor-time.ts';

/** Prints what happens to a terminal or, line by line, to a log. */
export class Report {
  readonly #running = new Set<string>();
  readonly #total: number;
  readonly #long: number;
  readonly #out: NodeJS.WriteStream;
  readonly #startedAt = performance.now();
  #done = 0;

  /**
   * @param total files that run
   * @param long files that do not, because they are long
   */
  constructor(total: number, long: number, out: NodeJS.WriteStream) {
    this.#total = total;
    this.#long = long;
    this.#out = out;
  }

  begun(file: string): void {
    this.#running.add(file);
    this.#status();
  }

  ended(file: FileResult): void {
    this.#running.delete(file.file);
    this.#done += 1;
    const tests = `${file.passed + file.failed} ${file.passed + file.failed === 1 ? 'test' : 'tests'}`;
    this.#print(
      `${file.ok ? 'ok    ' : 'FAILED'} ${file.file}  ${tests}  ${seconds(file.ms)}${file.cpuS === null ? '' : `, cpu ${file.cpuS.toFixed(1)} s`}`,
    );
    for (const { path, text } of file.skips) this.#print(`       skipped: ${path.slice(1).join(' › ')}: ${text}`);
    if (!file.ok) this.failure(file);
    this.#status();
  }

  /** What failed in a file, why, and how to run the file alone. */
  failure(file: FileResult): void {
    for (const { path, text } of file.failures) {
      this.#print(`  ✗ ${path.slice(1).join(' › ') || file.file}`);
      if (text !== '') this.#print(indented(text));
    }
    if (file.errors !== '') this.#print(`  standard error:\n${indented(file.errors)}`);
    this.#print(`  alone: npm test -- ${file.file}`);
  }

  /** The sums; the last line is "N passed, N failed". */
  finished(results: readonly FileResult[]): void {
    this.#clear();
    const bad = results.filter(({ ok }) => !ok);
    const sum = (key: 'passed' | 'failed'): number => results.reduce((total, file) => total + file[key], 0);
    const skipped = results.reduce((total, file) => total + file.skips.length, 0);
    if (bad.length > 0) this.#print(`\nwhat failed: ${bad.map(({ file }) => file).join(' ')}`);
    const cpu = childrenCpuSeconds();
    this.#print(
      `\n${results.length} files in ${seconds(performance.now() - this.#startedAt)}${cpu === null ? '' : `, ${Math.round(cpu)} s of processor time`}` +
        `${skipped === 0 ? '' : `, ${skipped} skipped`}`,
    );
    if (this.#long > 0) this.#print(`${this.#long} long files did not run: npm test -- --all runs them, too`);
    this.#print(`${sum('passed')} passed, ${sum('failed')} failed`);
  }

  #print(text: string): void {
    this.#clear();
    this.#out.write(`${text}\n`);
  }

  #status(): void {
    if (!this.#out.isTTY) return;
    this.#clear();
    this.#out.write(`${this.#done}/${this.#total} ${[...this.#running].join('  ')}`.slice(0, this.#out.columns - 1));
  }

  #clear(): void {
    if (this.#out.isTTY) this.#out.write('\r\u001B[K');
  }
}

function indented(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `      ${line}`)
    .join('\n');
}

function seconds(ms: number): string {
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`;
}
