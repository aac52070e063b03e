import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../domain/context.ts';
import { type FileJob, deleteFileJobs, pendingFileJobs, runFileJob } from '../../domain/files/file-jobs.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import type { Logger } from '../../observability/log.ts';

/** Between two looks at what is left to do: somebody may be waiting for the thumbnail. */
const LOOK_MS = 50;
/** Pieces that are begun before what is left is read again; those of them that one owner has before others; and the time for it. */
const SLICE = 12;
const SLICE_OF_OWNER = 3;
const SLICE_MS = 1_000;
/** Pieces among which owners are looked for. */
const LOOK_AHEAD = 500;
/** One image is decoded while another is read and a third one written. */
const AT_ONCE = 3;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 600_000;

interface Failure {
  readonly tries: number;
  readonly dueAt: number;
}

/**
 * Does the work on files that commits have left: thumbnails, and the bytes of files that are gone. Each piece at least
 * once; one that fails is logged and tried again after a growing wait, and holds no other up.
 */
export class FileJobs {
  readonly #ctx: Context;
  readonly #log: Logger;
  readonly #gate = new Semaphore(AT_ONCE);
  readonly #failures = new Map<string, Failure>();
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;

  constructor(ctx: Context, log: Logger) {
    this.#ctx = ctx;
    this.#log = log;
  }

  /** Works until `stop`. */
  start(): void {
    this.#running ??= this.#loop();
  }

  /** Finishes what runs and starts nothing more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Does everything that is due now. */
  async runDue(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const pending = await pendingFileJobs(this.#ctx, LOOK_AHEAD + this.#failures.size);
      const jobs = fairSlice(pending.filter((job) => this.#isDue(job)));
      if (jobs.length === 0) return;
      const end = performance.now() + SLICE_MS;
      const done = await Promise.all(jobs.map((job) => this.#gate.run(() => this.#run(job, end))));
      const finished = jobs.filter((_, index) => done[index]);
      if (finished.length > 0) await deleteFileJobs(this.#ctx, finished);
    }
  }

  async #loop(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await this.runDue();
      } catch (error) {
        this.#log.error({ err: error }, 'the work on files could not be read or marked as done; it is tried again');
        await delay(FIRST_RETRY_MS);
      }
      await delay(LOOK_MS);
    }
  }

  #isDue({ key }: FileJob): boolean {
    return (this.#failures.get(key)?.dueAt ?? 0) <= this.#ctx.clock.monotonic();
  }

  /** Whether the piece is done. It is not begun after `end`: others may have come meanwhile. */
  async #run(job: FileJob, end: number): Promise<boolean> {
    if (this.#stop.signal.aborted || performance.now() > end) return false;
    try {
      const done = await runFileJob(this.#ctx, job);
      this.#failures.delete(job.key);
      return done;
    } catch (error) {
      const tries = (this.#failures.get(job.key)?.tries ?? 0) + 1;
      const wait = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 4 ** (tries - 1));
      this.#failures.set(job.key, { tries, dueAt: this.#ctx.clock.monotonic() + wait });
      this.#log.error({ err: error, job: job.kind, file: job.fileId, tries }, 'work on a file failed; it is tried again');
      return false;
    }
  }
}

/** The next pieces: in their order, but first those that are among the first few of their owner. */
function fairSlice(jobs: readonly FileJob[]): FileJob[] {
  const seen = new Map<string, number>();
  const [first, later]: [FileJob[], FileJob[]] = [[], []];
  for (const job of jobs) {
    const ofOwner = seen.get(job.owner) ?? 0;
    seen.set(job.owner, ofOwner + 1);
    (ofOwner < SLICE_OF_OWNER ? first : later).push(job);
    if (first.length === SLICE) break;
  }
  return [...first, ...later].slice(0, SLICE);
}
