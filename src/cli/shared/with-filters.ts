import type { Config } from '../../config/schema.ts';
import type { Context } from '../../domain/context.ts';
import { createLogger } from '../../observability/log.ts';
import { PluginError } from '../../plugins/loading/plugin-error.ts';
import { loadWebPlugins } from '../../plugins/web/web-plugins.ts';
import type { Filters } from '../../ports/filters.ts';
import { Failure } from '../failure.ts';

const STDERR = 2;

/**
 * Runs `work` with the filters of the configured plugins, as the web workers of a server have them; undefined if there
 * are none.
 *
 * @param dryNow for a dry run, in which everything that plugins write is dropped: the time that they see
 * @throws {Failure} if a plugin that is not optional cannot be loaded
 */
export async function withFilters<T>(
  ctx: Context,
  config: Config,
  dryNow: (() => number) | undefined,
  work: (filters: Filters | undefined) => Promise<T>,
): Promise<T> {
  const log = createLogger({ level: config.log.level, name: 'cli', output: STDERR });
  const plugins = await loadWebPlugins({ ctx, config, log, dryNow }).catch((error: unknown) => {
    throw error instanceof PluginError
      ? new Failure(error.message, ['`collab plugin check` shows all problems.'], 2)
      : error;
  });
  try {
    return await work(plugins.filters);
  } finally {
    await plugins.close();
  }
}
