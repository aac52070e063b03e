import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../../domain/context.ts';
import { type FileJob, deleteFileJobs, pendingFileJobs, runFileJob } from '../../domain/files/file-jobs.ts';
import { Semaphore } from '../../lib/concurrency/semaphore.ts';
import type { Logger } from '../../observability/log.ts';

/** How often it checks for new jobs. Short, because a user may be waiting for a thumbnail. */
const POLL_MS = 50;
/** Jobs per batch. */
const BATCH = 12;
/** Jobs of one user in a batch; more only if the jobs of the other users do not fill it. */
const BATCH_OF_USER = 3;
/**
 * Jobs of a batch that have not started after this time, in milliseconds, are put off: a job that goes before may have
 * been added.
 */
const BATCH_MS = 1_000;
/** How many pending jobs are read to find those of different users. */
const READ_AHEAD = 500;
/** While one image is decoded, another one can be read and a third one written. */
const CONCURRENCY = 3;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 600_000;

interface Failure {
  readonly tries: number;
  readonly dueAt: number;
}

/**
 * Runs the jobs that commits have recorded: creating thumbnails, and deleting the contents of deleted files. Each job
 * runs at least once. A job that fails is logged and retried after a growing delay; it does not delay others.
 */
export class FileJobs {
  readonly #ctx: Context;
  readonly #log: Logger;
  readonly #confirm: () => Promise<void>;
  readonly #semaphore = new Semaphore(CONCURRENCY);
  readonly #failures = new Map<string, Failure>();
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;

  /** @param confirm as `LeaseKeeper.confirm`; called before each job */
  constructor(ctx: Context, log: Logger, confirm: () => Promise<void> = () => Promise.resolve()) {
    this.#ctx = ctx;
    this.#log = log;
    this.#confirm = confirm;
  }

  /** Looks for jobs every 50 ms and runs them, until `stop`. */
  start(): void {
    this.#running ??= this.#loop();
  }

  /** Runs the jobs that are due, unless it is doing so. Call it periodically where `start` was not called. */
  poll(): void {
    if (this.#stop.signal.aborted) return;
    this.#running ??= this.#tryDue().finally(() => (this.#running = null));
  }

  /** Starts no more jobs. Resolves once the running ones are done. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Runs all jobs that are due now. */
  async runDue(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const pending = await pendingFileJobs(this.#ctx, READ_AHEAD + this.#failures.size);
      const jobs = fairBatch(pending.filter((job) => this.#isDue(job)));
      if (jobs.length === 0) return;
      const end = performance.now() + BATCH_MS;
      const done = await Promise.all(jobs.map((job) => this.#semaphore.run(() => this.#run(job, end))));
      const finished = jobs.filter((_, index) => done[index]);
      if (finished.length > 0) await deleteFileJobs(this.#ctx, finished);
    }
  }

  async #loop(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#tryDue();
      await delay(POLL_MS);
    }
  }

  async #tryDue(): Promise<void> {
    try {
      await this.runDue();
    } catch (error) {
      this.#log.error({ err: error }, 'the jobs for files could not be read or marked as done; they will be retried');
      await delay(FIRST_RETRY_MS);
    }
  }

  #isDue({ key }: FileJob): boolean {
    return (this.#failures.get(key)?.dueAt ?? 0) <= this.#ctx.clock.monotonic();
  }

  /**
   * Runs a job and returns whether it is done. Does not start it after `end`, because jobs of others may have arrived.
   */
  async #run(job: FileJob, end: number): Promise<boolean> {
    if (this.#stop.signal.aborted || performance.now() > end) return false;
    try {
      await this.#confirm();
      const done = await runFileJob(this.#ctx, job);
      this.#failures.delete(job.key);
      return done;
    } catch (error) {
      const tries = (this.#failures.get(job.key)?.tries ?? 0) + 1;
      const wait = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 4 ** (tries - 1));
      this.#failures.set(job.key, { tries, dueAt: this.#ctx.clock.monotonic() + wait });
      this.#log.error(
        { err: error, job: job.kind, file: job.fileId, tries },
        'a job for a file failed; it will be retried',
      );
      return false;
    }
  }
}

/** The next batch, in the order of the jobs, except that the first few jobs of each user come first. */
function fairBatch(jobs: readonly FileJob[]): FileJob[] {
  const seen = new Map<string, number>();
  const [first, later]: [FileJob[], FileJob[]] = [[], []];
  for (const job of jobs) {
    const ofUser = seen.get(job.userKey) ?? 0;
    seen.set(job.userKey, ofUser + 1);
    (ofUser < BATCH_OF_USER ? first : later).push(job);
    if (first.length === BATCH) break;
  }
  return [...first, ...later].slice(0, BATCH);
}
