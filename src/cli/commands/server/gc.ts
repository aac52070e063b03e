import type { Command } from 'commander';
import { type Context, requireFileStorage } from '../../../domain/context.ts';
import { listEnvironments } from '../../../domain/environments/environments.ts';
import { type FileJob, deleteFileJobs, pendingFileJobs, runFileJob } from '../../../domain/files/file-jobs.ts';
import { findOrphans, type Orphan, removeOrphans, STAGED_MS, sweepUnlinked } from '../../../domain/files/file-sweep.ts';
import { recountInboxes } from '../../../domain/notifications/inbox-check.ts';
import { recountUsage } from '../../../domain/quotas/usage-count.ts';
import { addCommand } from '../../command.ts';
import { Failure } from '../../failure.ts';
import { withStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { nextSteps, printResult } from '../../terminal/output.ts';

interface Options {
  readonly dryRun?: true;
}

/** Counts of removed data, or of data that would be removed without --dry-run. */
interface Removed {
  readonly dryRun: boolean;
  /** Uploads that no comment has linked for a day. */
  readonly unlinked: number;
  /** Files without a record, and their size. */
  readonly orphans: number;
  readonly orphanBytes: number;
  /** Uploads that were never finished. */
  readonly staged: number;
}

/** Adds `gc`. */
export function register(program: Command): void {
  addCommand(program, 'gc', {
    summary: 'Remove files that are not needed.',
    details:
      'Removes uploads that no comment has linked for 24 hours, files without a record (left by a crash), and unfinished uploads. ' +
      'A running server does the first and the last every hour. Also recounts the usage that quotas limit, and unread notifications.',
    examples: ['collab gc --dry-run', 'collab gc'],
  })
    .option('--dry-run', 'Only show what would be removed.')
    .action(gc);
}

async function gc(options: Options, command: Command): Promise<void> {
  const at = invocationOf(command);
  const dryRun = options.dryRun === true;
  const removed = await withStore(at, (ctx) => collect(ctx, dryRun));
  printResult(at.json, removed, () => describe(removed));
}

async function collect(ctx: Context, dryRun: boolean): Promise<Removed> {
  if (!dryRun && (await requireFileStorage(ctx).blobs.isRetained())) throw backupRunningFailure();
  let unlinked = 0;
  for (const { id } of await listEnvironments(ctx)) {
    unlinked += await sweepUnlinked(ctx, id, dryRun);
    if (dryRun) continue;
    await recountUsage(ctx, id);
    await recountInboxes(ctx, id);
  }
  if (!dryRun) await removeBytes(ctx);
  const orphans: Orphan[] = [];
  for await (const orphan of findOrphans(ctx)) orphans.push(orphan);
  if (!dryRun && !(await removeOrphans(ctx, orphans))) throw backupRunningFailure();
  const staged = await requireFileStorage(ctx).blobs.sweepStaged(STAGED_MS, dryRun);
  return {
    dryRun,
    unlinked,
    orphans: orphans.length,
    orphanBytes: orphans.reduce((sum, { bytes }) => sum + bytes, 0),
    staged,
  };
}

/** Deletes the contents of deleted files. A running server may do the same at the same time. */
async function removeBytes(ctx: Context): Promise<void> {
  const jobs = (await pendingFileJobs(ctx)).filter(({ kind }) => kind === 'clear' || kind === 'remove');
  const done: FileJob[] = [];
  for (const job of jobs) if (await runFileJob(ctx, job)) done.push(job);
  await deleteFileJobs(ctx, done);
}

function backupRunningFailure(): Failure {
  return new Failure('A backup is running, and no file may be removed before it has finished.', [
    'Run `collab gc` again then.',
    'If none is running, such as after its container was killed, start the server: it releases the files within ten minutes.',
  ]);
}

function describe({ dryRun, unlinked, orphans, orphanBytes, staged }: Removed): string {
  if (unlinked + orphans + staged === 0) return 'There is nothing to remove.';
  const lines = [
    `${dryRun ? 'Would remove' : 'Removed'}:`,
    `  ${unlinked} uploads that no comment has linked for a day`,
    `  ${orphans} files without a record (${Math.ceil(orphanBytes / 1024)} kB)`,
    `  ${staged} uploads that were never finished`,
  ];
  return [...lines, ...(dryRun ? [nextSteps('collab gc')] : [])].join('\n');
}
