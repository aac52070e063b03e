import { setTimeout as delay } from 'node:timers/promises';
import type { StoreBounds } from '../bounds.ts';
import type { StoreView } from './store-view.ts';

/** A checkpoint is due when the log is this old, whatever its size. */
const CHECKPOINT_AGE_MS = 5_000;
/**
 * From the first multiple of `checkpointBytes` on, each group commit is delayed, in proportion to the size of the log,
 * by at most `MAX_DELAY_MS`; from the second on, it waits for a checkpoint. So a load that checkpoints cannot keep up
 * with slows down evenly.
 */
const DELAY_FACTOR = 1.25;
const WAIT_FACTOR = 2;
const MAX_DELAY_MS = 10;
/** How often a waiting process checks for a checkpoint. */
const POLL_MS = 5;

/** Decides when a checkpoint is due, and delays commits while checkpoints do not keep up with them. */
export class CheckpointPacer {
  readonly #view: StoreView;
  readonly #checkpointBytes: number;
  readonly #waitMs: number;
  readonly #checkpoint: () => Promise<void>;
  #waiting: Promise<void> | undefined;
  #closed = false;

  /**
   * @param bounds of the store
   * @param checkpoint does a checkpoint in this process
   */
  constructor(view: StoreView, { checkpointBytes, checkpointWaitMs }: StoreBounds, checkpoint: () => Promise<void>) {
    this.#view = view;
    this.#checkpointBytes = checkpointBytes;
    this.#waitMs = checkpointWaitMs;
    this.#checkpoint = checkpoint;
  }

  /** Whether the background worker should do a checkpoint now. */
  get isDue(): boolean {
    return this.#view.backlogBytes >= this.#checkpointBytes || this.#view.backlogAge >= CHECKPOINT_AGE_MS;
  }

  /** Resolves when the next group may be committed; undefined if it may be committed now. Never rejects. */
  throttle(): Promise<void> | undefined {
    const { backlogBytes } = this.#view;
    const [delayed, waiting] = [DELAY_FACTOR * this.#checkpointBytes, WAIT_FACTOR * this.#checkpointBytes];
    if (backlogBytes < delayed) return undefined;
    // If checkpoints fail, for example on a full disk, commits continue until the log is full.
    if (backlogBytes >= waiting) return this.waitForCheckpoint().catch(() => {});
    return delay(Math.ceil((MAX_DELAY_MS * (backlogBytes - delayed)) / (waiting - delayed)));
  }

  /** Resolves after a checkpoint of another process, or of this one if there is none soon. Rejects if that fails. */
  async waitForCheckpoint(): Promise<void> {
    this.#waiting ??= this.#poll().finally(() => (this.#waiting = undefined));
    await this.#waiting;
  }

  /** Makes pending waits resolve soon; call it when the store closes. */
  close(): void {
    this.#closed = true;
  }

  async #poll(): Promise<void> {
    const { checkpointed } = this.#view;
    for (const startedAt = performance.now(); performance.now() - startedAt < this.#waitMs;) {
      await delay(POLL_MS);
      if (this.#closed) return;
      this.#view.renew();
      if (this.#view.checkpointed > checkpointed) return;
    }
    await this.#checkpoint();
  }
}
