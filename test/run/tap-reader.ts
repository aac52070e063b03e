/** Begins the comment after the result of a file that says how much processor time it took. */
export const CPU_COMMENT = 'processor time:';

/** A test that failed, or one that was skipped. */
export interface Finding {
  /** Names from the file down: `test/x.test.ts › a group › a test`. */
  readonly path: readonly string[];
  /** What the test printed about it: TAP's block of diagnostics, or the reason of a skip. */
  readonly text: string;
}

/** What one test file reported. */
export interface FileReport {
  readonly file: string;
  /** False until the line of the file's own result. */
  ended: boolean;
  ok: boolean;
  /** Tests without tests inside; assertions are not counted. */
  passed: number;
  failed: number;
  readonly failures: Finding[];
  readonly skips: Finding[];
  ms: number;
  /** Seconds of processor time of its process and all that it started; null when unknown. */
  cpuS: number | null;
}

interface Level {
  readonly name: string;
  hasTests: boolean;
  hasFailure: boolean;
}

const RESULT = /^( *)(not )?ok \d+(?: - (.*?))?(?: # time=([\d.]+)(ms|s|m))?( # (?:SKIP|TODO).*?)?( \{)?$/i;

/**
 * Reads the TAP (version 14) that tap prints of test files, each a subtest of the top level.
 * Lines that are no TAP, such as what a test logs, are passed over.
 */
export class TapReader {
  readonly files: FileReport[] = [];
  /** What is being read, from the file down. */
  #levels: Level[] = [];
  #diagnostics: {
    readonly indent: string;
    readonly lines: string[];
    readonly finding: { path: string[]; text: string };
  } | null = null;

  /** The file that runs now, if one does. */
  get current(): FileReport | undefined {
    const last = this.files.at(-1);
    return last?.ended === false ? last : undefined;
  }

  /** The names of the test that runs now, from the file down. */
  get position(): string[] {
    return this.#levels.map(({ name }) => name);
  }

  line(line: string): void {
    if (this.#diagnostics !== null && this.#readDiagnostics(line)) return;
    const subtest = /^((?: {4})*)# Subtest: (.*)$/.exec(line);
    if (subtest !== null) return this.#begin((subtest[1] ?? '').length / 4, unescape(subtest[2] ?? ''));
    const cpu = line.startsWith(`# ${CPU_COMMENT} `) ? Number.parseFloat(line.slice(CPU_COMMENT.length + 3)) : null;
    const last = this.files.at(-1);
    if (cpu !== null && last?.ended === true) last.cpuS = cpu;
    const result = RESULT.exec(line);
    if (result !== null && (result[1] ?? '').length % 4 === 0) this.#result(result);
  }

  #begin(depth: number, name: string): void {
    // A test whose levels are not all known is text of another TAP.
    if (depth > this.#levels.length) return;
    this.#levels.length = depth;
    const parent = this.#levels.at(-1);
    if (parent !== undefined) parent.hasTests = true;
    this.#levels.push({ name, hasTests: false, hasFailure: false });
    if (depth === 0)
      this.files.push({
        file: name,
        ended: false,
        ok: false,
        passed: 0,
        failed: 0,
        failures: [],
        skips: [],
        ms: 0,
        cpuS: null,
      });
  }

  #result([, indent = '', not, name = '', time, unit, directive]: RegExpExecArray): void {
    const depth = indent.length / 4;
    const file = this.files.at(-1);
    if (file === undefined || depth > this.#levels.length) return;
    const level = this.#levels.length > depth ? this.#levels[depth] : undefined;
    const isTest = level !== undefined && level.name === unescape(name);
    const failed = not !== undefined && directive === undefined;
    const path = [...this.#levels.slice(0, depth).map((outer) => outer.name), unescape(name)];
    this.#levels.length = Math.min(this.#levels.length, depth);
    if (directive !== undefined && /skip/i.test(directive))
      file.skips.push({ path, text: directive.replace(/^ # skip:?\s*/i, '') });
    if (failed) {
      const finding = { path, text: '' };
      // A test that only contains one that failed has nothing to add.
      if (!isTest || !level.hasFailure) {
        file.failures.push(finding);
        this.#diagnostics = { indent, lines: [], finding };
      }
      const parent = this.#levels.at(-1);
      if (parent !== undefined) parent.hasFailure = true;
    }
    if (isTest && !level.hasTests) {
      if (failed) file.failed += 1;
      else file.passed += 1;
    }
    // What fails after a file has ended, such as a late error, is counted with it.
    if (depth === 0 && failed && !isTest) Object.assign(file, { ok: false, failed: file.failed + 1 });
    if (depth > 0 || !isTest) return;
    file.ended = true;
    file.ok = !failed;
    file.ms = Number(time ?? 0) * (unit === 'm' ? 60_000 : unit === 's' ? 1000 : 1);
    if (failed && file.failed === 0) file.failed = 1;
  }

  /**
   * Takes a line of the block `---` to `...` that follows a failure; false when there is no block, or no more of it.
   */
  #readDiagnostics(line: string): boolean {
    const { indent, lines, finding } = this.#diagnostics ?? { indent: '', lines: [], finding: { path: [], text: '' } };
    const inBlock = line.startsWith(`${indent}  `) && (lines.length > 0 || line.trim() === '---');
    if (!inBlock && !(lines.length > 0 && line.trim() === '')) {
      this.#diagnostics = null;
      return false;
    }
    if (line.trim() === '...' && line === `${indent}  ...`) this.#diagnostics = null;
    else lines.push(line);
    finding.text = lines
      .slice(1)
      .map((text) => text.slice(indent.length + 2))
      .join('\n')
      .trimEnd();
    return true;
  }
}

/** Undoes TAP's escapes in names. */
function unescape(name: string): string {
  return name.replaceAll(/\\([#\\])/g, '$1').trimEnd();
}
