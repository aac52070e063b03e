import type { Config } from '../../config/schema.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import type { Context } from '../../domain/context.ts';
import type { QueueAddress, StoredJob } from '../../domain/plugins/job.ts';
import { leaseJob } from '../../domain/plugins/job-attempts.ts';
import { addJobs, countJobs, listJobs, newJobs, readJob, removeJob, retryJob } from '../../domain/plugins/jobs.ts';
import { PluginKv } from '../../domain/plugins/kv.ts';
import { timestamp } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import type { Job, NewJob, PluginEnvironment, PluginLog, Queue } from '../api.ts';
import { type RunDeliveryFilters, pluginData } from './plugin-data.ts';
import { pluginHttp } from './plugin-http.ts';
import type { PluginServices } from './services.ts';

/** Dependencies of the services of a plugin. */
export interface LocalServiceDeps {
  readonly ctx: Context;
  readonly config: Pick<Config, 'publicUrl'>;
  readonly log: Logger;
  readonly passes: RunDeliveryFilters;
  /** Returns the runner of a queue in this process; undefined if another process runs its jobs. */
  readonly starterOf?: ((plugin: string, queue: string) => JobStarter | undefined) | undefined;
}

/** Begins jobs of one queue as they are added. */
export interface JobStarter {
  /**
   * Reserves a place for a job that is about to be added; null if it has to wait for its turn. Call `begin` or
   * `release`.
   */
  reserve(environment: PluginEnvironment, group: string): Reservation | null;
  /** Looks for jobs that are due: some were added without a reservation, or retried. */
  poll(): void;
}

/** A place for a job. */
export interface Reservation {
  /** How long its attempt may take until it counts as ended with its process, in milliseconds. */
  readonly leaseMs: number;
  /** Runs the job, which was stored with its first attempt started. */
  begin(job: StoredJob): void;
  /** Frees the place: the job was not added. */
  release(): void;
}

/** The services of a plugin in a process that has the store. */
export function localServices(
  plugin: string,
  entry: PluginEntry,
  { ctx, config, log, passes, starterOf }: LocalServiceDeps,
): PluginServices {
  const now = (): number => ctx.clock.now();
  return {
    publicUrl: config.publicUrl,
    now,
    log: pluginLog(log, plugin),
    http: pluginHttp(entry.allowPrivate === true, now),
    data: pluginData(ctx, passes),
    kv: ({ id }) => new PluginKv(ctx, id, plugin),
    queue: (name) => pluginQueue(ctx, plugin, name, starterOf?.(plugin, name)),
  };
}

/** The log of a plugin: each line has its name in `plugin`. */
export function pluginLog(log: Logger, plugin: string): PluginLog {
  const own = log.child({ plugin });
  return {
    debug: (fields, message) => own.debug(fields, message),
    info: (fields, message) => own.info(fields, message),
    warn: (fields, message) => own.warn(fields, message),
    error: (fields, message) => own.error(fields, message),
  };
}

function pluginQueue(ctx: Context, plugin: string, queue: string, starter: JobStarter | undefined): Queue {
  const address = ({ id }: PluginEnvironment): QueueAddress => ({ environmentId: id, plugin, queue });
  return {
    add: async (environment, jobs) => {
      if (jobs.length > 0) await addAndBegin(ctx, address(environment), environment, jobs, starter);
    },
    get: async (environment, id) => {
      const job = await readJob(ctx.store, address(environment), id);
      return job === undefined ? undefined : publicJob(job);
    },
    remove: (environment, id) => removeJob(ctx, address(environment), id),
    retry: async (environment, id) => {
      const found = await retryJob(ctx, address(environment), id);
      starter?.poll();
      return found;
    },
    list: async (environment, options) => (await listJobs(ctx, address(environment), options)).map(publicJob),
    count: (environment) => countJobs(ctx, address(environment)),
  };
}

/**
 * Adds jobs. A job that is due, and for which the runner of this process has a free place, is stored with its first
 * attempt begun: so it needs neither a second commit nor a read of the queue.
 */
async function addAndBegin(
  ctx: Context,
  address: QueueAddress,
  environment: PluginEnvironment,
  drafts: readonly NewJob[],
  starter: JobStarter | undefined,
): Promise<void> {
  const now = ctx.clock.now();
  const places = new Map<string, Reservation>();
  const jobs = newJobs(drafts, now).map((job) => {
    const place = job.dueAt > timestamp(now) || places.has(job.id) ? null : starter?.reserve(environment, job.group);
    if (!place) return job;
    places.set(job.id, place);
    return leaseJob(job, now, place.leaseMs);
  });
  try {
    for (const job of await addJobs(ctx, address, jobs)) {
      places.get(job.id)?.begin(job);
      places.delete(job.id);
    }
  } finally {
    for (const place of places.values()) place.release();
  }
  if (jobs.some(({ attempts }) => attempts === 0)) starter?.poll();
}

/** A job as plugins see it. */
export function publicJob({ id, payload, attempts, state, createdAt, dueAt, lastError }: StoredJob): Job {
  return { id, payload, attempts, state, createdAt, dueAt, lastError };
}
