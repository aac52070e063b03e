import { MEGABYTE } from '../../lib/bytes.ts';
import { CollabError } from '../../model/errors.ts';
import { AdmissionControl } from '../../lib/concurrency/admission-control.ts';
import { FairSemaphore } from '../../lib/concurrency/fair-semaphore.ts';
import type { Crdt, CrdtFault, CrdtOutcome } from '../../ports/crdt.ts';
import { actorKey } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { type ActorBudget, type BudgetContext, chargeBudget, spendBudget } from '../quotas/budgets.ts';

/** The part of the configuration that this needs. */
export interface CrdtConfig {
  readonly crdt: { readonly mergeSecondsPerMinute: number };
}

/** The operations on documents. Call them one after the other. Each throws `invalid_request`, `state_too_complex`. */
export interface Documents {
  /** Merges an update into a document; null is no document yet. */
  merge(stored: Uint8Array | null, update: Uint8Array): Promise<Uint8Array>;
  /** The part of a document that a document with this state vector lacks. */
  diff(stored: Uint8Array, stateVector: Uint8Array): Promise<Uint8Array>;
  /** The same document without the overhead of merging; null if compacting exceeds its bounds. */
  compact(stored: Uint8Array): Promise<Uint8Array | null>;
}

/** Runs work on documents while no other work runs. Actors are served in turn. */
export type RunExclusive = <T>(work: (documents: Documents) => Promise<T>) => Promise<T>;

/**
 * Bounds on waiting requests: their number and the bytes of their bodies per actor, and the bytes of all actors. They
 * bound the memory of one process; an actor whose requests reach N processes may have N times as many waiting.
 */
const ADMISSION_BOUNDS = { requests: 32, bytes: 32 * MEGABYTE, bytesOfAll: 128 * MEGABYTE };

/**
 * Runs the work on CRDT documents in one process and shares it fairly: actors are served in turn, the waiting requests
 * are bounded, and so is the time that an actor uses per minute. N processes run N at a time, and each takes its own
 * turns; the time per minute is that of all processes together, because it is counted in shared memory.
 */
export class CrdtService {
  readonly #crdt: Crdt;
  readonly #budget: ActorBudget;
  readonly #semaphore = new FairSemaphore(1);
  readonly #admissions = new AdmissionControl(ADMISSION_BOUNDS);

  constructor(crdt: Crdt, { crdt: { mergeSecondsPerMinute } }: CrdtConfig) {
    this.#crdt = crdt;
    const refusal = `Merging and comparing shared states took more than ${mergeSecondsPerMinute}s within a minute`;
    this.#budget = { name: 'merge', perMinute: mergeSecondsPerMinute * 1_000, exceededMessage: refusal };
  }

  /**
   * Admits a request that works on documents, and runs it. Throws `rate_limited` if the actor has used up its time, or
   * too many requests wait.
   *
   * @param bytes size of the request body, which stays in memory
   * @param request the request, which does its work on documents through `runExclusive`
   */
  async admit<T>(
    ctx: BudgetContext,
    actor: Actor,
    bytes: number,
    request: (runExclusive: RunExclusive) => Promise<T>,
  ): Promise<T> {
    await spendBudget(ctx, actor, this.#budget, 0);
    const key = actorKey(actor);
    const release = this.#admissions.admit(key, bytes);
    if (release === null) {
      throw new CollabError(
        'rate_limited',
        `Too many shared states wait to be merged: at most ${ADMISSION_BOUNDS.requests} requests with ` +
          `${ADMISSION_BOUNDS.bytes / MEGABYTE} MB per user. Try again in 1s`,
        1,
      );
    }
    try {
      return await request((work) => this.#semaphore.run(key, () => this.#run(ctx, actor, work)));
    } finally {
      release();
    }
  }

  /** Stops the running work. */
  close(): Promise<void> {
    return this.#crdt.close();
  }

  async #run<T>(ctx: BudgetContext, actor: Actor, work: (documents: Documents) => Promise<T>): Promise<T> {
    // The budget may have been used up while this request waited.
    await spendBudget(ctx, actor, this.#budget, 0);
    return work(this.#documentsFor(ctx, actor));
  }

  #documentsFor(ctx: BudgetContext, actor: Actor): Documents {
    const charged = async (outcome: Promise<CrdtOutcome>): Promise<Uint8Array | CrdtFault> => {
      const { result, ms } = await outcome;
      await chargeBudget(ctx, actor, this.#budget, ms);
      return result;
    };
    return {
      merge: async (stored, update) => requireResult(await charged(this.#crdt.merge(stored, update))),
      diff: async (stored, stateVector) => requireResult(await charged(this.#crdt.diff(stored, stateVector))),
      compact: async (stored) => {
        const result = await charged(this.#crdt.compact(stored));
        if (result === 'time' || result === 'memory') return null;
        // A document that can be merged can nearly always be loaded too. If it cannot, it stays as it is.
        return typeof result === 'string' ? stored : result;
      },
    };
  }
}

function requireResult(result: Uint8Array | CrdtFault): Uint8Array {
  if (typeof result !== 'string') return result;
  if (result === 'update') throw invalid('The state must be a Yjs update (encoding 1)');
  if (result === 'vector') throw invalid('sv must be a Yjs state vector as base64url');
  if (result === 'stored')
    throw invalid('The stored state of this room is not a Yjs document: clear it, or replace it without merge=yjs');
  throw tooComplex(result);
}

/** The error for a document that exceeds the bound on time or memory. */
export function tooComplex(bound: 'time' | 'memory'): CollabError {
  return new CollabError(
    'state_too_complex',
    `The Yjs document is too complex: merging or comparing it takes more ${bound} than the server allows`,
  );
}

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);
