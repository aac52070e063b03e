import { firstLine } from '../../lib/thrown.ts';
import type { Context } from '../../domain/context.ts';
import { listEnvironments } from '../../domain/environments/environments.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { hasStore } from '../shared/folder.ts';
import { useStore } from '../shared/open-store.ts';
import { shellWord } from '../../lib/shell-word.ts';
import { InterruptedError } from '../terminal/interruption.ts';
import { Progress } from '../terminal/progress.ts';
import { type Check, fail, ok, type CheckedFolder, warn } from './check.ts';

/** How many differences of an environment are listed. */
const MAX_LISTED = 10;
/** How often progress is updated. */
const PROGRESS_MS = 200;

/** Counts that `collab gc` corrects. */
export interface Counts {
  /** The name of the check. */
  readonly name: string;
  /** Their name in messages: `the usage counts`. */
  readonly what: string;
  /** Their effect while they are wrong: a sentence without its full stop. */
  readonly effect: string;
  /** The differences between counts and what is stored in an environment, each described in a few words. */
  readonly find: (ctx: Context, environment: Environment) => Promise<readonly string[]>;
}

/**
 * Compares counts of every environment with what is stored. Returns nothing if there is no store, which another check
 * reports.
 */
export async function checkCounts(
  { dir, config }: CheckedFolder,
  { name, what, effect, find }: Counts,
): Promise<Check[]> {
  if (!hasStore(config)) return [];
  const remedy = `Recount: collab gc --dir ${shellWord(dir)}. Until then, ${effect}.`;
  const progress = new Progress();
  const timer = setInterval(() => progress.update(() => `comparing ${what} with what is stored`), PROGRESS_MS);
  try {
    return await useStore(config, async (ctx) => {
      const environments = await listEnvironments(ctx);
      const checks: Check[] = [];
      for (const environment of environments) {
        const differences = await find(ctx, environment);
        if (differences.length > 0)
          checks.push(warn(name, `${what} of ${environment.slug} are wrong: ${listed(differences)}`, remedy));
      }
      return checks.length > 0
        ? checks
        : [ok(name, `${what} of ${environments.length} environments match what is stored`)];
    });
  } catch (error) {
    if (error instanceof InterruptedError) throw error;
    return [
      fail(
        name,
        `${what} cannot be compared with what is stored: ${firstLine(error)}`,
        'Correct what the other checks report, then run this again.',
      ),
    ];
  } finally {
    clearInterval(timer);
    progress.end();
  }
}

function listed(differences: readonly string[]): string {
  const more = differences.length - MAX_LISTED;
  return `${differences.slice(0, MAX_LISTED).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}
