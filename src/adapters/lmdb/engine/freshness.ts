/**
 * Reads in one callback after which the view is brought up to date again, so that a long run of reads does not keep one
 * snapshot of the base table.
 */
const READS_PER_SNAPSHOT = 256;

const RESOLVED = Promise.resolve();

/** Commits of all stores in this process: a view from before the latest of them is stale, even within one callback. */
let localCommits = 0;

/**
 * Decides how long a store view may serve reads without reading the log again: until the microtasks of the current
 * callback of the event loop have run. A later callback may handle bytes that arrived after the log was read, and their
 * sender may know of a commit that the view lacks (docs/decisions/0015-fresh-reads.md).
 */
export class Freshness {
  readonly #release: () => void;
  /** `localCommits` when the view was brought up to date; -1 when it is stale. */
  #freshAt = -1;
  #reads = 0;
  #expiryPlanned = false;
  /** Whether the caller announces input (`expireOnInput`). */
  #hasReadBarrier = false;
  readonly #expireNow = (): void => {
    this.#expiryPlanned = false;
    this.#release();
  };
  readonly #expireAfterMicrotasks = (): void => process.nextTick(this.#expireNow);

  /** @param release called when the view expires; releases its snapshots and calls `expire` */
  constructor(release: () => void) {
    this.#release = release;
  }

  /** Counts a read. Returns false if the view must be refreshed first. */
  countRead(): boolean {
    return this.#freshAt === localCommits && ++this.#reads <= READS_PER_SNAPSHOT;
  }

  /**
   * Marks the view as fresh; the caller has just brought it up to date. Node runs the microtasks of a callback and then
   * the queue of `nextTick` before the next callback. If the caller announces input, the view stays fresh until then,
   * and at most until the end of the event loop iteration.
   */
  start(): void {
    this.#freshAt = localCommits;
    this.#reads = 0;
    if (this.#expiryPlanned) return;
    this.#expiryPlanned = true;
    if (this.#hasReadBarrier) setImmediate(this.#expireNow);
    else void RESOLVED.then(this.#expireAfterMicrotasks);
  }

  /** Marks the view as stale. */
  expire(): void {
    this.#freshAt = -1;
  }

  /** As `StoreOperations.expireOnInput`. */
  expireOnInput(): () => void {
    this.#hasReadBarrier = true;
    return () => this.expire();
  }

  /** Marks all views of this process as stale, because this process has committed. */
  expireAll(): void {
    localCommits++;
  }
}
