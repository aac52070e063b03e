import { timeKey } from '../../lib/ids.ts';
import type { StoredFile } from '../../model/attachment.ts';
import { removeFile } from './attachments.ts';
import { type Context, requireFileStorage } from '../context.ts';
import { environmentById, listEnvironments } from '../environments/environments.ts';
import { fileOfThumbnail } from './file-jobs.ts';
import { filesOf, unlinkedOf } from '../records/partitions.ts';

/** How long an upload waits for a comment that links it, in milliseconds. */
export const UNLINKED_MS = 24 * 3_600_000;
/** A staged file to which nothing was written for so long belongs to no upload any more. */
export const STAGED_MS = 3_600_000;
/** A blob is there a moment before its record is. */
const ORPHAN_MS = 3_600_000;

const SLICE = 500;

/** Bytes without a record: left by a crash, or put there by nobody of ours. */
export interface Orphan {
  readonly environmentId: string;
  readonly blob: string;
  readonly bytes: number;
}

/**
 * Removes the uploads of an environment that no comment linked for 24 hours. Returns how many.
 * @param dryRun only counts them
 */
export async function sweepUnlinked(ctx: Context, environmentId: string, dryRun = false): Promise<number> {
  const end = minFileId(ctx.clock.now() - UNLINKED_MS);
  let swept = 0;
  for (let after: string | undefined; ; ) {
    const slice = await ctx.store.range(unlinkedOf(environmentId), { after, limit: SLICE });
    const stale = slice.filter(({ key }) => key < end).map(({ key }) => key);
    swept += dryRun ? stale.length : await removeUnlinked(ctx, environmentId, stale);
    // Ids begin with their time, so the rest is younger.
    if (stale.length < SLICE) return swept;
    after = slice.at(-1)?.key;
  }
}

function removeUnlinked(ctx: Context, environmentId: string, ids: readonly string[]): Promise<number> {
  return ctx.store.transact(async (tx) => {
    let removed = 0;
    for (const id of ids) {
      const stored = await tx.get(filesOf(environmentId), id);
      if (stored === undefined || (JSON.parse(stored) as StoredFile).commentId !== null) continue;
      await removeFile(tx, environmentId, id);
      removed++;
    }
    return removed;
  });
}

/** Every blob without a record, in any environment, those of deleted environments too. What came within the last hour is left out. */
export async function* findOrphans(ctx: Context): AsyncIterable<Orphan> {
  const { blobs } = requireFileStorage(ctx);
  const end = minFileId(ctx.clock.now() - ORPHAN_MS);
  for (const environmentId of await blobs.environments()) {
    for await (const blob of blobs.list(environmentId)) {
      const fileId = fileOfThumbnail(blob);
      if (GENERATED_FILE_ID.test(fileId) && fileId >= end) continue;
      if ((await ctx.store.get(filesOf(environmentId), fileId)) !== undefined) continue;
      const { size = 0 } = (await blobs.stat(environmentId, blob)) ?? {};
      yield { environmentId, blob, bytes: size };
    }
  }
}

/** Removes the orphans of `findOrphans`, and what is left of deleted environments. Returns false when it stopped, because the files are held. */
export async function removeOrphans(ctx: Context, orphans: readonly Orphan[]): Promise<boolean> {
  const { blobs } = requireFileStorage(ctx);
  for (const { environmentId, blob } of orphans) {
    if (await blobs.isHeld()) return false;
    await blobs.remove(environmentId, blob);
  }
  for (const environmentId of await blobs.environments()) {
    const exists = await environmentById(ctx, environmentId).then(() => true, () => false);
    if (exists) continue;
    if (await blobs.isHeld()) return false;
    await blobs.removeAll(environmentId);
  }
  return true;
}

/** How many files are recorded, and which of them have lost their bytes. */
export async function checkFiles(ctx: Context): Promise<{ files: number; lost: string[] }> {
  const { blobs } = requireFileStorage(ctx);
  const lost: string[] = [];
  let files = 0;
  for (const { id: environmentId } of await listEnvironments(ctx)) {
    for (let after: string | undefined; ; ) {
      const slice = await ctx.store.range(filesOf(environmentId), { after, limit: SLICE });
      for (const { key } of slice) if ((await blobs.stat(environmentId, key)) === undefined) lost.push(key);
      files += slice.length;
      if (slice.length < SLICE) break;
      after = slice.at(-1)?.key;
    }
  }
  return { files, lost };
}

const GENERATED_FILE_ID = /^file_[0-9a-z]{20}$/;

/** Where the ids of files that were uploaded at a time begin. */
const minFileId = (time: number): string => `file_${timeKey(time)}`;
