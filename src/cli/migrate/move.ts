import type { Blobs } from '../../ports/blobs.ts';
import type { StoreTransfer } from '../../ports/store-transfer.ts';
import { whileFilesAreKept } from '../backup/kept-files.ts';
import { Failure } from '../failure.ts';
import { bytesText, type Progress } from '../terminal/progress.ts';
import { BlobCopy } from './copy-blobs.ts';
import { EventCopy } from './copy-events.ts';
import { copyRecords } from './copy-records.ts';

/** Writes stop when the last pass has found no more changed partitions than this, or after so many passes. */
const FEW_PARTITIONS = 200;
const MOST_PASSES = 20;

/** What is moved. */
export interface MoveOptions {
  readonly source: StoreTransfer;
  readonly target: StoreTransfer;
  /** The files of both; absent if they stay where they are. */
  readonly blobs?: { readonly source: Blobs; readonly target: Blobs } | undefined;
  /** Whether to end before writes stop. */
  readonly prepareOnly: boolean;
  readonly progress: Pick<Progress, 'update'>;
  readonly signal: AbortSignal;
}

/** What was moved. Everything was read back from the target and compared with the source. */
export interface MoveResult {
  readonly records: number;
  readonly streams: number;
  readonly events: number;
  /** Null if the files stay where they are. */
  readonly files: { readonly count: number; readonly bytes: number } | null;
  /** Files that the source has lost or that differ from their record there: `environment/file`. */
  readonly faults: { readonly missing: readonly string[]; readonly damaged: readonly string[] };
  /** Milliseconds for which the source refused writes, so far; null if it takes them. */
  readonly stoppedMs: number | null;
}

/**
 * Moves a store, and its files, into a target whose state is `unfinished`. Reads everything while servers write, then
 * what has changed meanwhile, until that is little; then stops writes, copies the rest, marks the source as moved, and
 * makes the target usable. When it fails or is aborted before that mark, the source takes writes again.
 *
 * @throws the reason of the signal soon after it is aborted
 */
export async function move(options: MoveOptions): Promise<MoveResult> {
  const { blobs, signal } = options;
  if (blobs === undefined) return new Move(options, signal).run();
  return whileFilesAreKept(blobs.source, signal, (kept) => new Move(options, kept).run());
}

class Move {
  readonly #options: MoveOptions;
  readonly #signal: AbortSignal;
  readonly #events: EventCopy;
  readonly #blobs: BlobCopy | undefined;
  /** Records that the target has. */
  #records = 0;
  /** The partitions that were written to and not read back yet; null: all. */
  #unverified: ReadonlySet<string> | null = null;
  /** The partitions that differed when they were read back: they must be among the next changes, or were not stored. */
  #suspects: ReadonlySet<string> = new Set();

  constructor(options: MoveOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    const { source, target, blobs } = options;
    this.#events = new EventCopy(source, target, () =>
      this.#step(() => `events: ${this.#events.verified} of ${this.#events.events} copied and compared`),
    );
    if (blobs !== undefined)
      this.#blobs = new BlobCopy(blobs.source, blobs.target, () =>
        this.#step(() => `files: ${this.#blobs?.files ?? 0} copied, ${bytesText(this.#blobs?.bytes ?? 0)}`),
      );
  }

  async run(): Promise<MoveResult> {
    const { source, prepareOnly } = this.#options;
    // From now on the source tells what changes.
    await source.changes();
    await this.#copy(null, 'copying records');
    await this.#events.copy();
    await this.#blobs?.copyAll();
    // The second time everything is read back from the target.
    this.#unverified = null;
    for (let pass = 1, changed = Infinity; changed > FEW_PARTITIONS && pass <= MOST_PASSES; pass++)
      changed = await this.#copyChanges();
    return prepareOnly ? this.#result(null) : this.#finish();
  }

  /**
   * Copies what has changed since the last call, and compares again what was written by it. Returns the number of
   * partitions.
   */
  async #copyChanges(): Promise<number> {
    const changed = await this.#options.source.changes();
    const lost = [...this.#suspects].find((partition) => changed !== null && !changed.has(partition));
    if (lost !== undefined) throw this.#lostFailure(lost);
    const partitions = changed === null || this.#unverified === null ? null : union(changed, this.#unverified);
    const differing = await this.#copy(partitions, 'comparing records');
    this.#unverified = differing;
    this.#suspects = new Set(changed === null ? [] : [...differing].filter((partition) => !changed.has(partition)));
    await this.#events.copy();
    await this.#blobs?.copyNamed();
    return partitions?.size ?? Infinity;
  }

  /** Makes records of the target equal to those of the source. Returns the partitions where they were not. */
  async #copy(partitions: ReadonlySet<string> | null, what: string): Promise<ReadonlySet<string>> {
    const { source, target } = this.#options;
    let seen = 0;
    const found = await copyRecords(source, target, partitions, {
      record: (record, isNew) => {
        seen++;
        this.#blobs?.add(record, isNew);
      },
      step: () => this.#step(() => `${what}: ${seen}${partitions === null ? '' : ' that may have changed'}`),
    });
    this.#records = partitions === null ? found.records : this.#records + found.records - found.had;
    return found.partitions;
  }

  async #finish(): Promise<MoveResult> {
    const { source, target } = this.#options;
    const { epoch } = source;
    const stopped = performance.now();
    try {
      await source.setState({ kind: 'moving', other: target.label, epoch });
      // Nothing changes any more: what is written now must be there when it is read back.
      await this.#copyChanges();
      const [lost] = [...this.#suspects, ...(await this.#copy(this.#unverified, 'comparing records'))];
      if (lost !== undefined) throw this.#lostFailure(lost);
      await this.#requireClaim();
      this.#signal.throwIfAborted();
    } catch (error) {
      // If this fails too, the source says at its next start what to do.
      await source.resume(false).catch(() => {});
      throw error;
    }
    await source.setState({ kind: 'moved', other: target.label, epoch });
    await target.finish(epoch);
    return this.#result(performance.now() - stopped);
  }

  async #result(stoppedMs: number | null): Promise<MoveResult> {
    const { source } = this.#options;
    const missing: string[] = [];
    for (const [environmentId, fileId] of this.#blobs?.missing() ?? [])
      // A file may have been deleted since its record was read.
      if ((await source.get(`e/${environmentId}/files`, fileId)) !== undefined)
        missing.push(`${environmentId}/${fileId}`);
    return {
      records: this.#records,
      streams: this.#events.streams,
      events: this.#events.events,
      files: this.#blobs === undefined ? null : { count: this.#blobs.files, bytes: this.#blobs.bytes },
      faults: { missing, damaged: this.#blobs?.damaged ?? [] },
      stoppedMs,
    };
  }

  /** Another move, from another machine, may have taken the target at the same time. */
  async #requireClaim(): Promise<void> {
    const { source, target } = this.#options;
    const state = await target.state();
    if (state?.kind !== 'unfinished' || state.other !== source.label || state.epoch !== source.epoch)
      throw new Failure(`${target.label} is no longer the target of this migration, so nothing was moved.`, [
        'Find out who else uses it, choose an empty target, and run the command again.',
      ]);
  }

  #step(text: () => string): void {
    this.#signal.throwIfAborted();
    this.#options.progress.update(text);
  }

  #lostFailure(partition: string): Failure {
    return new Failure(
      `${this.#options.target.label} does not have what was written to it (records of ${partition}), so nothing was moved.`,
      ['Check the disk and the logs of the target, empty it, and run the command again.'],
    );
  }
}

function union(one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...one, ...other]);
}
