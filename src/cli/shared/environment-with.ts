import type { Context } from '../../domain/context.ts';
import { findEnvironment, listEnvironments } from '../../domain/environments/environments.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { usageFailure } from '../failure.ts';

/**
 * The environment that has something with an id, and what `find` returned for it; undefined if none has.
 *
 * @param env the environment that the command line names; it is required if several have the id
 * @param what names the thing, e.g. `comment cm_1`
 * @throws {Failure} if several environments have the id
 * @throws {CollabError} `environment_not_found`
 */
export async function environmentWith<T>(
  ctx: Context,
  env: string | undefined,
  what: string,
  find: (environment: Environment) => Promise<T | undefined>,
): Promise<{ readonly environment: Environment; readonly found: T } | undefined> {
  const environments = env === undefined ? await listEnvironments(ctx) : [await findEnvironment(ctx, env)];
  const all = [];
  for (const environment of environments) {
    const found = await find(environment);
    if (found !== undefined) all.push({ environment, found });
  }
  if (all.length > 1)
    throw usageFailure(
      `Several environments have a ${what}: ${all.map(({ environment }) => environment.slug).join(', ')}.`,
      'Name the environment with --env <slug>.',
    );
  return all[0];
}
