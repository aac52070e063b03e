import type { PluginEntry } from '../../config/plugin-entries.ts';
import type { Context } from '../../domain/context.ts';
import { listEnvironments } from '../../domain/environments/environments.ts';

/** An entry of the option `plugins`, and the slugs under its `environments` that no environment has. */
export interface UnknownEnvironments {
  readonly use: string;
  readonly slugs: readonly string[];
}

/**
 * Finds the entries that name environments that do not exist: a misspelt slug leaves the plugin as it is everywhere.
 */
export async function findUnknownEnvironments(
  ctx: Context,
  entries: readonly PluginEntry[],
): Promise<readonly UnknownEnvironments[]> {
  const known = new Set((await listEnvironments(ctx)).map(({ slug }) => slug));
  return entries.flatMap(({ use, environments = {} }) => {
    const slugs = Object.keys(environments).filter((slug) => !known.has(slug));
    return slugs.length === 0 ? [] : [{ use, slugs }];
  });
}
