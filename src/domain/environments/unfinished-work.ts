import { CollabError } from '../../model/errors.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { cancelRemovals, clearFiles } from '../files/file-jobs.ts';
import { environmentPrefix, UNFINISHED_WORK } from '../records/partitions.ts';
import { parseRecord, putRecord } from '../records/record.ts';
import { scanPartitions, scanSlices } from '../records/scan.ts';

/**
 * Records that an environment has records and files that no client can reach: the rest of a deleted environment, or the
 * part of an environment imported so far. Written in the commit of the deletion, and before the first record of the
 * import, so that everything that a crash leaves behind is removed later.
 */
interface UnfinishedWork {
  readonly by: 'deletion' | 'import';
  readonly slug: string;
  /** Milliseconds since the epoch: when the environment was deleted, or when the import last refreshed its marker. */
  readonly at: number;
  /** Whether everything was removed once. Requests that began before a deletion may still write after that. */
  readonly emptied: boolean;
}

/** How long after a deletion late writes of requests are still removed. */
const DELETION_GRACE_MS = 3_600_000;
/** An import that has not refreshed its marker for so long has ended without cleaning up. */
const IMPORT_TIMEOUT_MS = 3_600_000;
/** How often an import refreshes its marker. */
const REFRESH_MS = 60_000;
/** Records removed in one transaction. */
const SLICE = 500;
/** Characters of values removed in one transaction, approximately. */
const SLICE_LENGTH = 2 * 1024 * 1024;

/** Records that everything in an environment is to be removed, which `finishDeletion` and `sweepUnfinishedWork` do. */
export function markDeletion(tx: Transaction, { id, slug }: Pick<Environment, 'id' | 'slug'>, now: number): void {
  const work: UnfinishedWork = { by: 'deletion', slug, at: now, emptied: false };
  putRecord(tx, UNFINISHED_WORK, id, work);
}

/** Whether an environment was deleted and is not completely removed yet. */
export async function isPartlyDeleted(reader: Pick<Reader, 'get'>, id: string): Promise<boolean> {
  const stored = await reader.get(UNFINISHED_WORK, id);
  return stored !== undefined && isPendingDeletion(parse(stored));
}

/** The deleted environment with this id or slug that is not completely removed yet; undefined if there is none. */
export async function findPartlyDeleted(
  { store }: Context,
  idOrSlug: string,
): Promise<Pick<Environment, 'id' | 'slug'> | undefined> {
  for (const { key: id, value } of await store.range(UNFINISHED_WORK)) {
    const work = parse(value);
    if (isPendingDeletion(work) && (id === idOrSlug || work.slug === idOrSlug)) return { id, slug: work.slug };
  }
  return undefined;
}

/** Removes everything that is left of a deleted environment. No effect on any other. */
export async function finishDeletion(ctx: Context, id: string): Promise<void> {
  const stored = await ctx.store.get(UNFINISHED_WORK, id);
  if (stored === undefined || parse(stored).by !== 'deletion') return;
  await clearFiles(ctx, id);
  if (await removeAll(ctx, id, stored))
    await replaceRecord(ctx, id, stored, JSON.stringify({ ...parse(stored), emptied: true } satisfies UnfinishedWork));
}

/** Continues interrupted deletions and removes the results of interrupted imports. For the background worker. */
export async function sweepUnfinishedWork(ctx: Context): Promise<void> {
  const now = ctx.clock.now();
  for (const { key: id, value } of await ctx.store.range(UNFINISHED_WORK)) {
    const { by, at, emptied } = parse(value);
    if (by === 'deletion' && !emptied) await finishDeletion(ctx, id);
    if (now - at < (by === 'deletion' ? DELETION_GRACE_MS : IMPORT_TIMEOUT_MS)) continue;
    await clearFiles(ctx, id);
    if (await removeAll(ctx, id, value)) await replaceRecord(ctx, id, value, undefined);
  }
}

/**
 * The claim of an import on an environment: as long as it is stored unchanged, the import may write and
 * `sweepUnfinishedWork` leaves the environment alone. Only the latest import of an environment holds it.
 */
export class ImportMarker {
  readonly #ctx: Context;
  readonly #id: string;
  readonly #slug: string;
  #stored: string;
  #refreshedAt: number;

  private constructor(ctx: Context, { id, slug }: Pick<Environment, 'id' | 'slug'>) {
    this.#ctx = ctx;
    this.#id = id;
    this.#slug = slug;
    this.#refreshedAt = ctx.clock.now();
    this.#stored = this.#render();
  }

  /** Stores a new marker, which invalidates any earlier one, and removes what is left of the environment. */
  static async begin(ctx: Context, environment: Pick<Environment, 'id' | 'slug'>): Promise<ImportMarker> {
    const marker = new ImportMarker(ctx, environment);
    await ctx.store.transact((tx) => Promise.resolve(tx.put(UNFINISHED_WORK, marker.#id, marker.#stored)));
    await cancelRemovals(ctx, marker.#id);
    await ctx.blobs?.removeAll(marker.#id);
    await removeAll(ctx, marker.#id, marker.#stored);
    return marker;
  }

  /**
   * Refreshes the marker, at most once a minute; call it often. Throws `internal` if the marker is no longer current.
   */
  async refresh(): Promise<void> {
    if (this.#ctx.clock.now() - this.#refreshedAt < REFRESH_MS) return;
    this.#refreshedAt = this.#ctx.clock.now();
    const text = this.#render();
    if (!(await replaceRecord(this.#ctx, this.#id, this.#stored, text))) throw importWasRemoved();
    this.#stored = text;
  }

  /** Makes a commit of the import depend on the marker. Throws `internal` if the marker is no longer current. */
  async requireCurrent(tx: Transaction): Promise<void> {
    if ((await tx.get(UNFINISHED_WORK, this.#id)) !== this.#stored) throw importWasRemoved();
  }

  /** As `requireCurrent`, and removes the marker: the environment is imported. */
  async complete(tx: Transaction): Promise<void> {
    await this.requireCurrent(tx);
    tx.delete(UNFINISHED_WORK, this.#id);
  }

  /** Removes the marker and everything imported, unless the marker is no longer current. */
  async rollBack(): Promise<void> {
    if ((await this.#ctx.store.get(UNFINISHED_WORK, this.#id)) !== this.#stored) return;
    await this.#ctx.blobs?.removeAll(this.#id);
    if (await removeAll(this.#ctx, this.#id, this.#stored))
      await replaceRecord(this.#ctx, this.#id, this.#stored, undefined);
  }

  #render(): string {
    return JSON.stringify({
      by: 'import',
      slug: this.#slug,
      at: this.#refreshedAt,
      emptied: false,
    } satisfies UnfinishedWork);
  }
}

const parse = parseRecord<UnfinishedWork>;
const isPendingDeletion = ({ by, emptied }: UnfinishedWork): boolean => by === 'deletion' && !emptied;
const importWasRemoved = (): CollabError =>
  new CollabError(
    'internal',
    'The imported records were removed in the meantime, by another import or by the cleanup of unfinished imports',
  );

/**
 * Removes the records of an environment while its `UnfinishedWork` record is `stored`. An import that begins replaces
 * that.
 * @returns whether everything was removed
 */
async function removeAll(ctx: Context, id: string, stored: string): Promise<boolean> {
  let slice: [partition: string, key: string][] = [];
  let length = 0;
  for await (const name of scanPartitions(ctx.store, environmentPrefix(id))) {
    for await (const entries of scanSlices(ctx.store, name, { limit: SLICE })) {
      for (const { key, value } of entries) {
        slice.push([name, key]);
        length += value.length;
      }
      if (slice.length < SLICE && length < SLICE_LENGTH) continue;
      if (!(await removeSlice(ctx, id, stored, slice))) return false;
      slice = [];
      length = 0;
    }
  }
  return slice.length === 0 || removeSlice(ctx, id, stored, slice);
}

function removeSlice(
  ctx: Context,
  id: string,
  stored: string,
  slice: readonly (readonly [partition: string, key: string])[],
): Promise<boolean> {
  return ctx.store.transact(async (tx) => {
    if ((await tx.get(UNFINISHED_WORK, id)) !== stored) return false;
    for (const [partition, key] of slice) tx.delete(partition, key);
    return true;
  });
}

/** Replaces an `UnfinishedWork` record if it still is `stored`; undefined removes it. Returns whether it was. */
function replaceRecord(ctx: Context, id: string, stored: string, text: string | undefined): Promise<boolean> {
  return ctx.store.transact(async (tx) => {
    if ((await tx.get(UNFINISHED_WORK, id)) !== stored) return false;
    if (text === undefined) tx.delete(UNFINISHED_WORK, id);
    else tx.put(UNFINISHED_WORK, id, text);
    return true;
  });
}
