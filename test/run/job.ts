import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { compiledPath } from './bundle-path.ts';
import { needDisk } from './plan.ts';
import { JOB_VARIABLE, markedPids } from './processor-time.ts';
import { type FileReport, TapReader } from './tap-reader.ts';

/** How much of what a job prints as errors is kept, in characters. */
const KEPT_ERRORS = 8000;

/** Without the certificates of this machine: Node.js 20 reads them at each start, which takes 0.13 s for a usual file. */
const { NODE_EXTRA_CA_CERTS: _certificates, ...environment } = process.env;

export interface JobOptions {
  /** The folder of the compiled files. */
  readonly folder: string;
  /** A folder in memory; undefined if there is none. */
  readonly memory: string | undefined;
  /** Seconds that one file may take. */
  readonly timeoutS: number;
  /** Receives each line of TAP. */
  readonly onLine?: (line: string) => void;
  /** Called when a file begins. */
  readonly onFile?: (file: string) => void;
  /** Called when a file has ended. */
  readonly onEnd?: (file: FileResult) => void;
}

/** The end of one test file. */
export interface FileResult extends FileReport {
  /** The end of what its process wrote to standard error. */
  readonly errors: string;
}

/** A process that runs test files, one after the other. */
export class Job {
  /**
   * Resolves with a result for each file that began, when the process has ended and everything that it left running.
   */
  readonly ended: Promise<FileResult[]>;
  readonly #reader = new TapReader();
  readonly #child: ChildProcess;
  readonly #id = `${process.pid}-${performance.now()}`;
  readonly #options: JobOptions;
  readonly #errors = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #timedOut = false;
  #reported = 0;

  constructor(files: readonly string[], options: JobOptions) {
    this.#options = options;
    const { folder, memory, timeoutS } = options;
    this.#child = spawn(
      process.execPath,
      ['--enable-source-maps', compiledPath(folder, 'test/run/host.ts'), folder, ...files],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...environment,
          [JOB_VARIABLE]: this.#id,
          TEST_BUILD: folder,
          // tap's own limit would be 30 s a test.
          TAP_TIMEOUT: String(timeoutS),
          ...(memory !== undefined && { TEST_MEMORY: memory, ...(!needDisk(files) && { TMPDIR: memory }) }),
        },
        detached: true,
      },
    );
    this.#limitTime();
    this.ended = this.#run();
  }

  /** Kills the process and all that it started. */
  kill(): void {
    killGroup(this.#child.pid);
    killMarked(this.#id);
  }

  async #run(): Promise<FileResult[]> {
    const { stdout, stderr } = this.#child;
    if (stdout === null || stderr === null) throw new Error('the job has no output');
    createInterface({ input: stdout }).on('line', (line) => this.#line(line));
    stderr.setEncoding('utf8').on('data', (text: string) => this.#error(text));
    const closed = new Promise<void>((resolve) => this.#child.once('close', () => resolve()));
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      this.#child.once('exit', (...end: [number | null, string | null]) => resolve(end)),
    );
    clearTimeout(this.#timer);
    // What it left running holds its output open.
    this.kill();
    await closed;
    const how = this.#timedOut
      ? `it did not end within ${this.#options.timeoutS} s`
      : `its process ended with ${signal ?? `exit code ${code}`}`;
    const { current, files } = this.#reader;
    const guilty = current ?? (code !== 0 && files.every(({ ok }) => ok) ? files.at(-1) : undefined);
    if (guilty !== undefined) {
      guilty.ok = false;
      guilty.ended = true;
      guilty.failed += 1;
      guilty.failures.push({ path: current === undefined ? [guilty.file] : this.#reader.position, text: how });
    }
    this.#reportEnded();
    return this.#reader.files.map((file) => this.#resultOf(file));
  }

  /** The end of what the process wrote to standard error. */
  get errors(): string {
    return [...this.#errors.values()].join('').slice(-KEPT_ERRORS);
  }

  #resultOf(file: FileReport): FileResult {
    return Object.assign(file, { errors: this.#errors.get(file.file) ?? '' });
  }

  /** Tells of files that have ended; of the last one when the next begins, as its diagnostics follow its result. */
  #reportEnded(): void {
    for (; this.#reported < this.#reader.files.length; this.#reported += 1) {
      const file = this.#reader.files[this.#reported];
      if (file?.ended === true) this.#options.onEnd?.(this.#resultOf(file));
      else return;
    }
  }

  #line(line: string): void {
    const before = this.#reader.files.length;
    this.#reader.line(line);
    this.#options.onLine?.(line);
    if (this.#reader.files.length === before) return;
    this.#reportEnded();
    this.#options.onFile?.(this.#reader.files.at(-1)?.file ?? '');
    this.#limitTime();
  }

  /** Kills the process if the file that begins now takes too long; tap's own limit comes first. */
  #limitTime(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => {
        this.#timedOut = true;
        this.kill();
      },
      (this.#options.timeoutS + 15) * 1000,
    );
  }

  #error(text: string): void {
    const file = this.#reader.files.at(-1)?.file ?? '';
    this.#errors.set(file, ((this.#errors.get(file) ?? '') + text).slice(-KEPT_ERRORS));
  }
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** Kills processes that left the group of their job, such as servers that tests start detached. */
function killMarked(id: string): void {
  for (const pid of markedPids(id)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}
