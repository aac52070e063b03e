import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from '../domain/context.ts';
import { type FileJob, forgetFileJobs, pendingFileJobs, runFileJob } from '../domain/file-jobs.ts';
import { Gate } from '../lib/gate.ts';
import type { Logger } from '../log.ts';

/** Between two looks at what is left to do: somebody may be waiting for the thumbnail. */
const LOOK_MS = 50;
/** Pieces that are begun before what is asked for is looked at again. */
const SLICE = 12;
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
  readonly #gate = new Gate(AT_ONCE);
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
      const pending = await pendingFileJobs(this.#ctx, SLICE + this.#failures.size);
      const jobs = pending.filter((job) => this.#isDue(job)).slice(0, SLICE);
      if (jobs.length === 0) return;
      const done = await Promise.all(jobs.map((job) => this.#gate.run(() => this.#run(job))));
      const finished = jobs.filter((_, index) => done[index]);
      if (finished.length > 0) await forgetFileJobs(this.#ctx, finished);
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

  /** Whether the piece is done. */
  async #run(job: FileJob): Promise<boolean> {
    if (this.#stop.signal.aborted) return false;
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
