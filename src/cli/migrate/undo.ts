import { openTransfer } from '../../engines.ts';
import { StartError } from '../../cluster/exit.ts';
import { lockDataFolder } from '../../cluster/data-folder-lock.ts';
import type { Config } from '../../config/schema.ts';
import { Failure, usageFailure } from '../failure.ts';
import { lockMigration } from './lock-migration.ts';
import type { Invocation } from '../shared/invocation.ts';
import { nextSteps, printResult } from '../terminal/output.ts';
import { confirmDestruction } from '../terminal/prompt.ts';
import { shellWord } from '../../lib/shell-word.ts';

/**
 * Lets servers use a store again that was moved, or that is marked because a move was interrupted. One that was moved
 * gets a new epoch, because the other store may have used positions since.
 */
export async function undo({ dir, json }: Invocation, config: Config, yes: boolean): Promise<void> {
  const closings: (() => unknown)[] = [await lockMigration(config)];
  try {
    const store = await openTransfer(config);
    closings.push(() => store.close());
    const state = await store.state();
    if (state === undefined) throw usageFailure(`${store.label} was not moved, so there is nothing to undo.`);
    if (state.kind === 'unfinished')
      throw usageFailure(
        `${store.label} is the target of an unfinished migration from ${state.other}, which has all the data.`,
        'Remove this store, or run the migration again to finish it.',
      );
    const wasMoved = state.kind === 'moved';
    if (wasMoved) {
      const lock = await lockOf(config.dataDir);
      closings.push(() => lock.release());
      await confirmDestruction({
        warning: `This goes back to the data as it was when it was moved to ${state.other}. What was written there since is not here.`,
        answer: 'undo',
        yes,
      });
    }
    await store.resume(wasMoved);
    printResult(json, { dir, other: state.other, epoch: store.epoch }, () =>
      [
        `The store takes writes again. Nothing was changed in ${state.other}: do not serve both.`,
        nextSteps(`collab start --dir ${shellWord(dir)}`),
      ].join('\n'),
    );
  } finally {
    for (const close of closings.toReversed()) await close();
  }
}

/** A server that runs has the old epoch in its memory. */
async function lockOf(dataDir: string): Promise<{ release(): void }> {
  try {
    return await lockDataFolder(dataDir);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    throw new Failure(`A server is running on ${dataDir}, so nothing was changed.`, ['Stop it first.']);
  }
}
