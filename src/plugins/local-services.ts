import type { Config } from '../config/schema.ts';
import type { PluginEntry } from '../config/plugin-entries.ts';
import type { Context } from '../domain/context.ts';
import type { QueueAddress, StoredJob } from '../domain/plugins/job.ts';
import { addJobs, countJobs, listJobs, readJob, removeJob, retryJob } from '../domain/plugins/jobs.ts';
import { PluginKv } from '../domain/plugins/kv.ts';
import type { Logger } from '../observability/log.ts';
import type { Job, PluginEnvironment, PluginLog, Queue } from './api.ts';
import { type Passes, pluginData } from './plugin-data.ts';
import { pluginHttp } from './plugin-http.ts';
import type { PluginServices } from './services.ts';

/** What the services of a plugin work with. */
export interface LocalServiceDeps {
  readonly ctx: Context;
  readonly config: Pick<Config, 'publicUrl'>;
  readonly log: Logger;
  readonly passes: Passes;
  /** Called when a plugin has added or retried jobs, once they are on disk. */
  readonly onJobs?: (() => void) | undefined;
}

/** The services of a plugin in a process that has the store. */
export function localServices(plugin: string, entry: PluginEntry, { ctx, config, log, passes, onJobs = () => {} }: LocalServiceDeps): PluginServices {
  const now = (): number => ctx.clock.now();
  return {
    publicUrl: config.publicUrl,
    now,
    log: pluginLog(log, plugin),
    http: pluginHttp(entry.allowPrivate === true, now),
    data: pluginData(ctx, passes),
    kv: ({ id }) => new PluginKv(ctx, id, plugin),
    queue: (name) => pluginQueue(ctx, plugin, name, onJobs),
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

function pluginQueue(ctx: Context, plugin: string, queue: string, onJobs: () => void): Queue {
  const address = ({ id }: PluginEnvironment): QueueAddress => ({ environmentId: id, plugin, queue });
  return {
    add: async (environment, jobs) => {
      if (jobs.length === 0) return;
      await addJobs(ctx, address(environment), jobs);
      onJobs();
    },
    get: async (environment, id) => {
      const job = await readJob(ctx.store, address(environment), id);
      return job === undefined ? undefined : publicJob(job);
    },
    remove: (environment, id) => removeJob(ctx, address(environment), id),
    retry: async (environment, id) => {
      const found = await retryJob(ctx, address(environment), id);
      onJobs();
      return found;
    },
    list: async (environment, options) => (await listJobs(ctx, address(environment), options)).map(publicJob),
    count: (environment) => countJobs(ctx, address(environment)),
  };
}

/** A job as plugins see it. */
export function publicJob({ id, payload, attempts, state, createdAt, dueAt, lastError }: StoredJob): Job {
  return { id, payload, attempts, state, createdAt, dueAt, lastError };
}
