import { CollabError } from '../../model/errors.ts';
import type { Environment } from '../../model/environment.ts';
import type { Entry, Reader, Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { clearFiles, cancelRemovals } from '../files/file-jobs.ts';
import { environmentPrefix, UNFINISHED_WORK } from '../records/partitions.ts';

/**
 * Says that there are records and files of an environment that nobody can reach: what a deletion has not removed yet, or what an
 * import has taken in so far. Written in the commit of the deletion, and before the import's first record, so that a crash
 * leaves nothing behind that nobody knows of.
 */
interface UnfinishedWork {
  readonly by: 'deletion' | 'import';
  readonly slug: string;
  /** Milliseconds since the epoch: when the environment was deleted, or when the import last said that it goes on. */
  readonly at: number;
  /** Whether all of it has been removed once. Requests that began before a deletion may still write after that. */
  readonly cleared: boolean;
}

/** How long after a deletion is looked for what was written late. */
const DELETION_GRACE_MS = 3_600_000;
/** An import that has said nothing for so long has ended without cleaning up. */
const IMPORT_TIMEOUT_MS = 3_600_000;
/** How often an import says that it goes on. */
const REFRESH_MS = 60_000;
/** Records, and about as many characters, that are removed in one transaction. */
const SLICE = 500;
const SLICE_LENGTH = 2 * 1024 * 1024;
const PARTITIONS_PER_READ = 200;

/** Notes that everything in an environment is to be removed. `finishDeletion` does it, or `sweepLeftovers`. */
export function markDeletion(tx: Transaction, { id, slug }: Pick<Environment, 'id' | 'slug'>, now: number): void {
  const leftover: UnfinishedWork = { by: 'deletion', slug, at: now, cleared: false };
  tx.put(UNFINISHED_WORK, id, JSON.stringify(leftover));
}

/** Whether an environment was deleted and not all of it has been removed. */
export async function isPartlyDeleted(reader: Pick<Reader, 'get'>, id: string): Promise<boolean> {
  const stored = await reader.get(UNFINISHED_WORK, id);
  return stored !== undefined && isPendingDeletion(parse(stored));
}

/** The deleted environment with this id or slug of which not all has been removed; undefined where there is none. */
export async function findPartlyDeleted({ store }: Context, idOrSlug: string): Promise<Pick<Environment, 'id' | 'slug'> | undefined> {
  for (const { key: id, value } of await store.range(UNFINISHED_WORK)) {
    const leftover = parse(value);
    if (isPendingDeletion(leftover) && (id === idOrSlug || leftover.slug === idOrSlug)) return { id, slug: leftover.slug };
  }
  return undefined;
}

/** Removes all that is left of a deleted environment. No effect where nothing is. */
export async function finishDeletion(ctx: Context, id: string): Promise<void> {
  const stored = await ctx.store.get(UNFINISHED_WORK, id);
  if (stored === undefined || parse(stored).by !== 'deletion') return;
  await clearFiles(ctx, id);
  if (await removeAll(ctx, id, stored)) await replaceRecord(ctx, id, stored, JSON.stringify({ ...parse(stored), cleared: true } satisfies UnfinishedWork));
}

/** Goes on with deletions that were interrupted, and removes what imports that were interrupted have left. For the background worker. */
export async function sweepUnfinishedWork(ctx: Context): Promise<void> {
  const now = ctx.clock.now();
  for (const { key: id, value } of await ctx.store.range(UNFINISHED_WORK)) {
    const { by, at, cleared } = parse(value);
    if (by === 'deletion' && !cleared) await finishDeletion(ctx, id);
    if (now - at < (by === 'deletion' ? DELETION_GRACE_MS : IMPORT_TIMEOUT_MS)) continue;
    await clearFiles(ctx, id);
    if (await removeAll(ctx, id, value)) await replaceRecord(ctx, id, value, undefined);
  }
}

/** Keeps what an import takes in apart from what is to be removed. One at a time may write an environment. */
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

  /** Removes what is left of an environment and notes that an import of it begins. */
  static async begin(ctx: Context, environment: Pick<Environment, 'id' | 'slug'>): Promise<ImportMarker> {
    const note = new ImportMarker(ctx, environment);
    await ctx.store.transact((tx) => Promise.resolve(tx.put(UNFINISHED_WORK, note.#id, note.#stored)));
    await cancelRemovals(ctx, note.#id);
    await ctx.blobs?.removeAll(note.#id);
    await removeAll(ctx, note.#id, note.#stored);
    return note;
  }

  /** Says that the import goes on, once it has said nothing for a minute. Throws `internal` when its work was taken for leftovers. */
  async refresh(): Promise<void> {
    if (this.#ctx.clock.now() - this.#refreshedAt < REFRESH_MS) return;
    this.#refreshedAt = this.#ctx.clock.now();
    const text = this.#render();
    if (!(await replaceRecord(this.#ctx, this.#id, this.#stored, text))) throw importWasRemoved();
    this.#stored = text;
  }

  /** Makes a commit of the import depend on its note. Throws `internal` when its work was taken for leftovers. */
  async requireCurrent(tx: Transaction): Promise<void> {
    if ((await tx.get(UNFINISHED_WORK, this.#id)) !== this.#stored) throw importWasRemoved();
  }

  /** As `require`; what was taken in stays. */
  async complete(tx: Transaction): Promise<void> {
    await this.requireCurrent(tx);
    tx.delete(UNFINISHED_WORK, this.#id);
  }

  /** Removes what was taken in. */
  async rollBack(): Promise<void> {
    if ((await this.#ctx.store.get(UNFINISHED_WORK, this.#id)) !== this.#stored) return;
    await this.#ctx.blobs?.removeAll(this.#id);
    if (await removeAll(this.#ctx, this.#id, this.#stored)) await replaceRecord(this.#ctx, this.#id, this.#stored, undefined);
  }

  #render(): string {
    return JSON.stringify({ by: 'import', slug: this.#slug, at: this.#refreshedAt, cleared: false } satisfies UnfinishedWork);
  }
}

const parse = (stored: string): UnfinishedWork => JSON.parse(stored) as UnfinishedWork;
const isPendingDeletion = ({ by, cleared }: UnfinishedWork): boolean => by === 'deletion' && !cleared;
const importWasRemoved = (): CollabError => new CollabError('internal', 'What was imported has been removed meanwhile: another import or a sweep took it for leftovers');

/**
 * Removes the records of an environment, as long as its note is `stored`: it changes when an import takes over.
 * @returns whether all was removed
 */
async function removeAll(ctx: Context, id: string, stored: string): Promise<boolean> {
  const prefix = environmentPrefix(id);
  for (let after = ''; ; ) {
    const names = await ctx.store.partitions(prefix, { after, limit: PARTITIONS_PER_READ });
    if (!(await removeRecords(ctx, id, stored, names))) return false;
    if (names.length < PARTITIONS_PER_READ) return true;
    after = names.at(-1) ?? '';
  }
}

/** Removes the records of these partitions in slices, of several partitions where they are small. */
async function removeRecords(ctx: Context, id: string, stored: string, names: readonly string[]): Promise<boolean> {
  let slice: [partition: string, key: string][] = [];
  let length = 0;
  for (const name of names) {
    for (let after: string | undefined; ; ) {
      const entries: Entry[] = await ctx.store.range(name, { after, limit: SLICE });
      for (const { key, value } of entries) {
        slice.push([name, key]);
        length += value.length;
      }
      after = entries.at(-1)?.key;
      if (slice.length >= SLICE || length >= SLICE_LENGTH) {
        if (!(await removeSlice(ctx, id, stored, slice))) return false;
        slice = [];
        length = 0;
      }
      if (entries.length < SLICE) break;
    }
  }
  return slice.length === 0 || removeSlice(ctx, id, stored, slice);
}

function removeSlice(ctx: Context, id: string, stored: string, slice: readonly (readonly [partition: string, key: string])[]): Promise<boolean> {
  return ctx.store.transact(async (tx) => {
    if ((await tx.get(UNFINISHED_WORK, id)) !== stored) return false;
    for (const [partition, key] of slice) tx.delete(partition, key);
    return true;
  });
}

/** Changes a note, unless it is another one by now; undefined removes it. Returns whether it was the same. */
function replaceRecord(ctx: Context, id: string, stored: string, text: string | undefined): Promise<boolean> {
  return ctx.store.transact(async (tx) => {
    if ((await tx.get(UNFINISHED_WORK, id)) !== stored) return false;
    if (text === undefined) tx.delete(UNFINISHED_WORK, id);
    else tx.put(UNFINISHED_WORK, id, text);
    return true;
  });
}
