import { timestamp } from '../../lib/clock.ts';
import { timeKey } from '../../lib/ids.ts';
import { removeFile } from './attachments.ts';
import { type Context, requireFileStorage } from '../context.ts';
import { environmentById, listEnvironments } from '../environments/environments.ts';
import { fileOfThumbnail } from './file-jobs.ts';
import { findFile } from './find-file.ts';
import { filesOf, unlinkedOf } from '../records/partitions.ts';
import { scanEntries, scanSlices } from '../records/scan.ts';

/** How long an upload is kept without a comment that links it, in milliseconds. */
export const UNLINKED_MS = 24 * 3_600_000;
/** A staged file without a write for so long belongs to no running upload. */
export const STAGED_MS = 3_600_000;
/** A blob whose id is younger is not an orphan: blobs are stored before their records. */
const ORPHAN_MS = 3_600_000;
/** An upload that takes longer is kept from the search for orphans by a record. */
const LONG_UPLOAD_MS = ORPHAN_MS / 2;

/** A blob without a record: left by a crash, or not written by the server. */
export interface Orphan {
  readonly environmentId: string;
  readonly blob: string;
  readonly bytes: number;
}

/**
 * Removes the uploads of an environment that no comment has linked within 24 hours, and returns their number.
 * @param dryRun only count them
 */
export async function sweepUnlinked(ctx: Context, environmentId: string, dryRun = false): Promise<number> {
  const end = minFileId(ctx.clock.now() - UNLINKED_MS);
  let swept = 0;
  for await (const slice of scanSlices(ctx.store, unlinkedOf(environmentId))) {
    const stale = slice.filter(({ key }) => key < end).map(({ key }) => key);
    swept += await removeUnlinked(ctx, environmentId, stale, dryRun);
    // Ids begin with their time, so the rest are younger.
    if (stale.length < slice.length) break;
  }
  return swept;
}

function removeUnlinked(ctx: Context, environmentId: string, ids: readonly string[], dryRun: boolean): Promise<number> {
  const end = timestamp(ctx.clock.now() - UNLINKED_MS);
  return ctx.store.transact(async (tx) => {
    let removed = 0;
    for (const id of ids) {
      const file = await findFile(tx, environmentId, id);
      // A large upload may have ended hours after the time in its id.
      const since = file?.createdAt ?? (await tx.get(unlinkedOf(environmentId), id)) ?? end;
      if (since >= end || (file !== undefined && file.commentId !== null)) continue;
      if (file !== undefined) removed++;
      if (dryRun) continue;
      if (file === undefined) tx.delete(unlinkedOf(environmentId), id);
      else await removeFile(tx, environmentId, id);
    }
    return removed;
  });
}

/**
 * Call it before the blob of an upload is committed: until its record is, the blob is no orphan. The time in the id
 * alone says that of an upload that takes minutes; for a longer one this stores a record.
 */
export async function keepFromOrphans(ctx: Context, environmentId: string, fileId: string): Promise<void> {
  const now = ctx.clock.now();
  if (fileId >= minFileId(now - LONG_UPLOAD_MS)) return;
  await ctx.store.transact((tx) => Promise.resolve(tx.put(unlinkedOf(environmentId), fileId, timestamp(now))));
}

/** All blobs without a record, including those of deleted environments, except blobs of the last hour. */
export async function* findOrphans(ctx: Context): AsyncIterable<Orphan> {
  const { blobs } = requireFileStorage(ctx);
  const end = minFileId(ctx.clock.now() - ORPHAN_MS);
  for (const environmentId of await blobs.environments()) {
    for await (const blob of blobs.list(environmentId)) {
      const fileId = fileOfThumbnail(blob);
      if (GENERATED_FILE_ID.test(fileId) && fileId >= end) continue;
      // In this order: a comment that links the file meanwhile deletes the first record, when there is the second one.
      if ((await ctx.store.get(unlinkedOf(environmentId), fileId)) !== undefined) continue;
      if ((await ctx.store.get(filesOf(environmentId), fileId)) !== undefined) continue;
      const { size = 0 } = (await blobs.stat(environmentId, blob)) ?? {};
      yield { environmentId, blob, bytes: size };
    }
  }
}

/**
 * Removes orphans, and all blobs of deleted environments. Returns false if it stopped because the blobs are retained.
 */
export async function removeOrphans(ctx: Context, orphans: readonly Orphan[]): Promise<boolean> {
  const { blobs } = requireFileStorage(ctx);
  for (const { environmentId, blob } of orphans) {
    if (await blobs.isRetained()) return false;
    await blobs.remove(environmentId, blob);
  }
  for (const environmentId of await blobs.environments()) {
    const exists = await environmentById(ctx, environmentId).then(
      () => true,
      () => false,
    );
    if (exists) continue;
    if (await blobs.isRetained()) return false;
    await blobs.removeAll(environmentId);
  }
  return true;
}

/** The number of recorded files, and the ids of those whose bytes are missing. */
export async function checkFiles(ctx: Context): Promise<{ files: number; lost: string[] }> {
  const { blobs } = requireFileStorage(ctx);
  const lost: string[] = [];
  let files = 0;
  for (const { id: environmentId } of await listEnvironments(ctx)) {
    for await (const { key } of scanEntries(ctx.store, filesOf(environmentId))) {
      if ((await blobs.stat(environmentId, key)) === undefined) lost.push(key);
      files++;
    }
  }
  return { files, lost };
}

const GENERATED_FILE_ID = /^file_[0-9a-z]{20}$/;

/** The smallest id of files uploaded at `time`, in milliseconds since the epoch. */
const minFileId = (time: number): string => `file_${timeKey(time)}`;
