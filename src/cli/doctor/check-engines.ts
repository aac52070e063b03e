import { listEnvironments } from '../../domain/environments/environments.ts';
import { listNodes } from '../../domain/nodes.ts';
import { type Context, requireFileStorage } from '../../domain/context.ts';
import { hasFilesInFolder } from '../../config/engines.ts';
import { firstLine } from '../../lib/thrown.ts';
import { version } from '../../model/version.ts';
import { EngineError } from '../../ports/engine-error.ts';
import { useStore } from '../shared/open-store.ts';
import { InterruptedError } from '../terminal/interruption.ts';
import { type Check, type CheckedFolder, fail, ok, warn } from './check.ts';
import { checkFilesOf } from './check-files.ts';

const REMEDY = 'Correct the option in config.json or its variable, or start the server that it names.';

/** Checks the engines of a configuration whose store is a server of its own, the nodes that run on it, and the files. */
export async function checkEngines(folder: CheckedFolder): Promise<Check[]> {
  try {
    const checks = await useStore(folder.config, (ctx) => inspect(ctx, folder));
    return checks.some(({ level }) => level === 'fail') ? checks : [...checks, await checkFilesOf(folder)];
  } catch (error) {
    if (error instanceof InterruptedError) throw error;
    return [fail(error instanceof EngineError ? error.option : 'store', firstLine(error), REMEDY)];
  }
}

async function inspect(ctx: Context, { config }: CheckedFolder): Promise<Check[]> {
  await ctx.store.probe();
  const environments = await listEnvironments(ctx);
  const store = ok('store', `can be read and written; epoch ${ctx.store.epoch}, ${environments.length} environments`);
  return [store, await checkShared(ctx), await checkBlobs(ctx, hasFilesInFolder(config))];
}

async function checkShared(ctx: Context): Promise<Check> {
  try {
    const nodes = await listNodes(ctx);
    const others = nodes.filter((node) => node.version !== version);
    if (others.length === 0) return ok('nodes', `${nodes.length} running`);
    return warn(
      'nodes',
      `${others.length} of ${nodes.length} run another version than ${version}, such as ${others[0]?.version}`,
      'Upgrade them one by one. Nodes of two versions are meant to run side by side for the time of an upgrade only.',
    );
  } catch (error) {
    return fail('shared', firstLine(error), REMEDY);
  }
}

async function checkBlobs(ctx: Context, isInFolder: boolean): Promise<Check> {
  if (isInFolder)
    return warn(
      'files',
      'uploaded files are in the folder of this machine: other nodes do not have them',
      'Set blobs.url if more than one node runs. `collab migrate` moves the files.',
    );
  try {
    await requireFileStorage(ctx).blobs.isRetained();
    return ok('blobs', 'the bucket can be read');
  } catch (error) {
    return fail('blobs', firstLine(error), REMEDY);
  }
}
