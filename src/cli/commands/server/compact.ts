import type { Command } from 'commander';
import { compact } from '../../../app.ts';
import { StartError } from '../../../cluster/exit.ts';
import { type DataLock, lockDataFolder } from '../../../cluster/data-folder-lock.ts';
import { addCommand } from '../../command.ts';
import { Failure } from '../../failure.ts';
import { hasStore, noFolderFailure, requireStoreInFolder } from '../../shared/folder.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { loadFolderConfig } from '../../shared/open-store.ts';
import { printResult } from '../../terminal/output.ts';
import { bytesText } from '../../terminal/progress.ts';

/** Adds `compact`. */
export function register(program: Command): void {
  addCommand(program, 'compact', {
    summary: 'Give free space inside the store’s file back to the disk.',
    details:
      'The store reuses free space, but its file never shrinks: after a lot was deleted, or after a stuck ' +
      'process kept a snapshot open, much of it may be free. ' +
      'The server must be stopped, and the disk needs space for a copy. A start does the same when more ' +
      'than half of the file and more than 256 MB are free.',
    examples: ['collab compact', 'collab compact --dir /srv/collab --json'],
  }).action(run);
}

async function run(_options: object, command: Command): Promise<void> {
  const { dir, json } = invocationOf(command);
  const config = await loadFolderConfig(dir);
  requireStoreInFolder(config, 'PostgreSQL reuses and frees space by itself (autovacuum).');
  if (!hasStore(config)) throw noFolderFailure(dir);
  const lock = await lockOf(config.dataDir);
  try {
    const result = await compact(config, false);
    if (result.outcome === 'in use') {
      throw new Failure('Another process has the store open, so nothing was changed.', [
        result.pids.length > 0
          ? `Wait for it, or end it: process ${result.pids.join(', ')}`
          : 'Run the command again when it has ended.',
      ]);
    }
    if (result.outcome === 'no space')
      throw new Failure(
        `The disk has too little free space for a copy of the store, so nothing was changed: ${bytesText(result.missing)} more are needed.`,
        ['Free that much space on the disk of the data folder, then run the command again.'],
      );
    const { before } = result;
    const after = result.outcome === 'compacted' ? result.after : before;
    printResult(
      json,
      { before, after },
      () => `The store’s file had ${bytesText(before)} and now has ${bytesText(after)}.`,
    );
  } finally {
    lock.release();
  }
}

async function lockOf(dataDir: string): Promise<DataLock> {
  try {
    return await lockDataFolder(dataDir);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    throw new Failure(`A server is running on ${dataDir}, so nothing was changed.`, [
      'Stop it first, or restart it: a start compacts the store when that is worth it.',
    ]);
  }
}
