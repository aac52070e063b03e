import type { Context } from '../../domain/context.ts';
import { freeLeases, makeDueEarlier } from '../../domain/plugins/job-attempts.ts';
import { type JobGroup, jobGroups, nextJobs } from '../../domain/plugins/jobs.ts';
import { clockOffset, timestamp } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';

/**
 * If the wall clock goes back by more than this between two polls, in milliseconds, it was set back; by less, it was
 * corrected.
 */
const CLOCK_STEP_MS = 1_000;

/** Dependencies of `DueJobs`. */
export interface DueJobsDeps {
  readonly ctx: Context;
  readonly log: Logger;
  readonly plugin: string;
  readonly queue: string;
  /** How long an attempt may take until it counts as ended with its process, in milliseconds. */
  readonly leaseMs: number;
  /** Whether an attempt at a job of a group runs in this process. */
  readonly isRunning: (group: JobGroup, id: string) => boolean;
}

/** Reads which jobs of a queue are due, over all environments. */
export class DueJobs {
  readonly #deps: DueJobsDeps;
  /**
   * The `dueAt` of the last job of each group that was begun since `reread`, by `groupKey`. The next ones are read from
   * there on: from the start, each read would pass over the keys of all jobs that were begun before and are still in
   * the base table.
   */
  readonly #begunUpTo = new Map<string, string>();
  #clockOffset: number;
  #areLeasesFreed = false;

  constructor(deps: DueJobsDeps) {
    this.#deps = deps;
    this.#clockOffset = clockOffset(deps.ctx.clock);
  }

  /** Whether the jobs that earlier processes were running are due. A job must not begin before: it would be freed too. */
  get areLeasesFreed(): boolean {
    return this.#areLeasesFreed;
  }

  /** Finds jobs again whose `dueAt` is earlier than that of the last one that was begun. */
  reread(): void {
    this.#begunUpTo.clear();
  }

  /** The groups with waiting jobs, sorted by environment and name. The first call frees the leases of earlier processes. */
  async groups(): Promise<readonly JobGroup[]> {
    const { ctx, plugin, queue, leaseMs } = this.#deps;
    const groups = (await jobGroups(ctx, `${plugin}~${queue}~`)).filter(({ counts }) => counts.waiting > 0);
    await this.#followClock(groups);
    if (!this.#areLeasesFreed) {
      // The lease of this process shows that every earlier one which ran jobs has ended, or is refused its commits.
      for (const group of groups) await freeLeases(ctx, group, leaseMs);
      this.#areLeasesFreed = true;
    }
    return groups;
  }

  /** The first due jobs of a group that do not run. At most `limit` are read. */
  async next(group: JobGroup, limit: number): Promise<readonly { dueAt: string; id: string }[]> {
    const { ctx, isRunning } = this.#deps;
    const now = timestamp(ctx.clock.now());
    const first = await nextJobs(ctx, group, limit, this.#begunUpTo.get(groupKey(group)));
    // A job may run for longer than its lease: while its thread starts, or while others run alone.
    return first.filter(({ id, dueAt }) => dueAt <= now && !isRunning(group, id));
  }

  /** Notes that the due jobs of a group up to this `dueAt` were begun. */
  begun(group: JobGroup, dueAt: string): void {
    this.#begunUpTo.set(groupKey(group), dueAt);
  }

  /** Makes jobs due earlier if the wall clock was set back: otherwise they would wait as much longer. */
  async #followClock(groups: readonly JobGroup[]): Promise<void> {
    const { ctx, log, plugin, queue, isRunning } = this.#deps;
    const offset = clockOffset(ctx.clock);
    const setBackMs = Math.round(this.#clockOffset - offset);
    if (setBackMs > CLOCK_STEP_MS) {
      for (const group of groups) await makeDueEarlier(ctx, group, setBackMs, (id) => isRunning(group, id));
      this.reread();
      log.warn(
        { plugin, queue, setBackMs },
        'the clock was set back: waiting jobs of a plugin are due earlier by as much',
      );
    }
    this.#clockOffset = offset;
  }
}

/** Identifies a group among those of a queue. */
export const groupKey = ({ environmentId, group }: Pick<JobGroup, 'environmentId' | 'group'>): string =>
  `${environmentId} ${group}`;
