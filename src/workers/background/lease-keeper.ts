import {
  FOLDER_NODE,
  type Lease,
  type LeaseHolder,
  LeaseLostError,
  type LeaseState,
  readLease,
  releaseLease,
  renewLease,
  requireLease,
  takeLease,
  wantLease,
} from '../../domain/leases/leases.ts';
import type { Clock } from '../../lib/clock.ts';
import { isStoreError } from '../../model/errors.ts';
import type { Logger } from '../../observability/log.ts';
import type { Store } from '../../ports/store.ts';

/** How long a lease must be seen not to be renewed until another node takes it, in milliseconds. */
const TERM_MS = 20_000;
/** How often a holder looks whether somebody waits for the lease, and renews it then, in milliseconds. */
const RENEW_MS = 5_000;
/** How often a worker that waits looks at the lease until it sees that it was renewed, in milliseconds. */
const LOOK_MS = 1_000;
/**
 * When a worker that has seen a renewal looks again, in milliseconds: shortly before the next one, so that it sees each
 * of them within `LOOK_MS`, whichever of the two clocks is faster.
 */
const LOOK_AGAIN_MS = RENEW_MS - 100;
/** After a look, the lease counts as held for this long, in milliseconds: half of the term. */
const CONFIRMED_MS = TERM_MS / 2;

/** Options of a keeper. */
export interface LeaseKeeperOptions {
  readonly store: Store;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
  readonly name: string;
  readonly holder: LeaseHolder;
  /** Called when the lease is taken; at most once. */
  readonly onTaken: (lease: Lease) => void;
  /** Called when it is found to be lost; at most once. The worker must not go on then. */
  readonly onLost: (error: LeaseLostError) => void;
}

/** A lease as a worker saw it last, unchanged. */
interface Observation {
  readonly state: LeaseState;
  /** By the monotonic clock of this machine. */
  readonly since: number;
}

/**
 * Takes a lease for this worker as soon as it may, and keeps it: at once if nobody holds it, a worker of the same node
 * did, or the store was moved from or to a folder since; else when this worker has seen it without a renewal for 20 s
 * by its own monotonic clock. Times of different machines are never compared. While nobody waits for the lease, keeping
 * it writes nothing.
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  #lease: Lease | null = null;
  #isLost = false;
  #stopped = false;
  /** When the last look began that found the lease held. */
  #heldAt = Number.NEGATIVE_INFINITY;
  #seen: Observation | null = null;
  /** Whether the last look has found that the lease was renewed since the one before. */
  #sawRenewal = false;
  #hasWarned = false;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
  }

  /** Looks once, and then again and again until `stop`. Resolves after the first look. Never rejects. */
  async start(): Promise<void> {
    await this.look();
    if (this.#stopped || this.#isLost) return;
    this.#timer = setTimeout(() => void this.start(), this.#waitMs());
  }

  #waitMs(): number {
    if (this.#lease !== null) return RENEW_MS;
    return this.#sawRenewal ? LOOK_AGAIN_MS : LOOK_MS;
  }

  /** Takes the lease if it may be taken, or renews it if somebody waits for it. Never rejects. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look());
    return this.#looking;
  }

  /**
   * Resolves if the lease is surely held, without reading anything if it was seen to be held in the last 10 s: call it
   * before something that no commit can refuse, such as a request to another server. Rejects with `LeaseLostError`.
   */
  readonly confirm = async (): Promise<void> => {
    const { clock, store } = this.#options;
    const now = clock.monotonic();
    if (now - this.#heldAt < CONFIRMED_MS) return;
    if (this.#lease === null) throw new Error('the lease was not taken');
    await requireLease(store, this.#lease).catch(this.#rethrow);
    this.#heldAt = now;
  };

  /** Says that a commit was refused because the lease is lost. */
  readonly lost = (error: LeaseLostError): void => {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#heldAt = Number.NEGATIVE_INFINITY;
    clearTimeout(this.#timer);
    this.#options.onLost(error);
  };

  /** Looks no more, so that the lease is not taken any more. What is held stays held until `release`. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  /**
   * Gives the lease up, after the work under it has ended, and returns whether it did. If the store refuses that, it
   * expires.
   */
  async release(): Promise<boolean> {
    const { store, log, name } = this.#options;
    if (this.#lease === null || this.#isLost) return false;
    try {
      await releaseLease(store, this.#lease);
      return true;
    } catch (error) {
      log.warn({ err: error, lease: name }, 'a lease could not be given up; other nodes wait until it expires');
      return false;
    }
  }

  async #look(): Promise<void> {
    if (this.#stopped || this.#isLost) return;
    const now = this.#options.clock.monotonic();
    try {
      if (this.#lease === null) await this.#tryToTake(now);
      else await this.#keep(this.#lease, now);
      this.#hasWarned = false;
    } catch (error) {
      if (this.#isLost || this.#hasWarned) return;
      this.#hasWarned = true;
      this.#options.log.warn(
        { err: error, lease: this.#options.name },
        'the lease of the background work could not be taken or renewed; it is tried again',
      );
    }
  }

  async #tryToTake(now: number): Promise<void> {
    const { store, name, holder, onTaken } = this.#options;
    const state = await readLease(store, name);
    if (!this.#mayTake(state, now)) return state.isWanted ? undefined : wantLease(store, name);
    const lease = await this.#take(state);
    if (lease === null) return;
    this.#lease = lease;
    this.#heldAt = now;
    if (state.holder !== null && state.holder.node !== holder.node && state.isWanted)
      this.#options.log.warn(
        { lease: name, from: state.holder, fence: lease.fence },
        'the worker that did the background work is silent: this one does it from now on',
      );
    onTaken(lease);
  }

  #mayTake(state: LeaseState, now: number): boolean {
    const { holder } = this.#options;
    if (state.holder === null || state.holder.node === holder.node) return true;
    // It came with a move from or to a folder (`collab migrate`), and the store that was left takes no writes.
    if ([state.holder.node, holder.node].includes(FOLDER_NODE)) return true;
    const last = this.#seen?.state;
    this.#sawRenewal = last?.fence === state.fence && last.renewals < state.renewals;
    const isSame = last?.fence === state.fence && last.renewals === state.renewals && last.isWanted === state.isWanted;
    if (this.#seen === null || !isSame) this.#seen = { state, since: now };
    // Before it is wanted, its holder need not renew it.
    return state.isWanted && now - this.#seen.since >= TERM_MS;
  }

  /**
   * While the store refuses writes, a worker goes on with the fencing number of the one before on its node, which has
   * ended: removing files, which needs no commit, may be what frees the disk.
   */
  async #take(state: LeaseState): Promise<Lease | null> {
    const { store, name, holder } = this.#options;
    try {
      return await takeLease(store, name, holder, state);
    } catch (error) {
      if (isStoreError(error) && state.holder?.node === holder.node) return { name, fence: state.fence };
      throw error;
    }
  }

  async #keep(lease: Lease, now: number): Promise<void> {
    const { store, name } = this.#options;
    const { isWanted } = await readLease(store, name);
    await (isWanted ? renewLease(store, lease) : requireLease(store, lease)).catch(this.#rethrow);
    this.#heldAt = now;
  }

  readonly #rethrow = (error: unknown): never => {
    if (error instanceof LeaseLostError) this.lost(error);
    throw error;
  };
}
