import { CollabError } from '../../model/errors.ts';
import { AdmissionControl } from '../../lib/admissions.ts';
import { FairSemaphore } from '../../lib/fair-semaphore.ts';
import type { Crdt, CrdtFault, CrdtOutcome } from '../../ports/crdt.ts';
import { actorKey } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { type ActorBudget, type BudgetContext, chargeBudget, spendBudget } from '../quotas/budgets.ts';

/** The part of the configuration that this needs. */
export interface CrdtConfig {
  readonly crdt: { readonly mergeSecondsPerMinute: number };
}

/** What a piece of work may do with documents, one call after the other. Each throws `invalid_request`, `state_too_complex`. */
export interface Documents {
  /** The document that has what both have; null stands for no document yet. */
  merge(stored: Uint8Array | null, update: Uint8Array): Promise<Uint8Array>;
  /** What a document has that one with this state vector lacks. */
  diff(stored: Uint8Array, stateVector: Uint8Array): Promise<Uint8Array>;
  /** The same document without what merging has left over; null when that takes more than its bounds. */
  compact(stored: Uint8Array): Promise<Uint8Array | null>;
}

/** Runs work on documents once it is the actor's turn. */
export type RunExclusive = <T>(work: (documents: Documents) => Promise<T>) => Promise<T>;

const MEGABYTE = 1024 * 1024;
/** What one actor may have waiting, and all together: requests, and bytes of their bodies. */
const ADMISSION_BOUNDS = { requests: 32, bytes: 32 * MEGABYTE, bytesOfAll: 128 * MEGABYTE };

/**
 * The work on CRDT documents of one process, shared fairly: actors take turns, what waits is bounded, and so is the time
 * that one actor takes in a minute.
 */
export class CrdtService {
  readonly #crdt: Crdt;
  readonly #budget: ActorBudget;
  readonly #semaphore = new FairSemaphore(1);
  readonly #admissions = new AdmissionControl(ADMISSION_BOUNDS);

  constructor(crdt: Crdt, { crdt: { mergeSecondsPerMinute } }: CrdtConfig) {
    this.#crdt = crdt;
    const refusal = `Merging and comparing shared states took more than ${mergeSecondsPerMinute}s of a minute`;
    this.#budget = { name: 'merge', perMinute: mergeSecondsPerMinute * 1_000, refusal };
  }

  /**
   * Admits a request of an actor that will work on documents, and runs it. Throws `rate_limited` when the actor has used
   * its time, or too much waits already.
   *
   * @param bytes what the request holds in memory
   */
  async admit<T>(ctx: BudgetContext, actor: Actor, bytes: number, request: (inTurn: RunExclusive) => Promise<T>): Promise<T> {
    spendBudget(ctx, actor, this.#budget, 0);
    const key = actorKey(actor);
    const leave = this.#admissions.admit(key, bytes);
    if (leave === null) {
      throw new CollabError('rate_limited', `Too many shared states wait to be merged: at most ${ADMISSION_BOUNDS.requests} requests with ${ADMISSION_BOUNDS.bytes / MEGABYTE} MB of one user. Try again in 1s`, 1);
    }
    try {
      return await request((work) => this.#semaphore.run(key, () => this.#run(ctx, actor, work)));
    } finally {
      leave();
    }
  }

  /** Ends what runs. */
  close(): Promise<void> {
    return this.#crdt.close();
  }

  async #run<T>(ctx: BudgetContext, actor: Actor, work: (documents: Documents) => Promise<T>): Promise<T> {
    // It may have been used up while this waited.
    spendBudget(ctx, actor, this.#budget, 0);
    return work(this.#documentsFor(ctx, actor));
  }

  #documentsFor(ctx: BudgetContext, actor: Actor): Documents {
    const charged = async (outcome: Promise<CrdtOutcome>): Promise<Uint8Array | CrdtFault> => {
      const { result, ms } = await outcome;
      chargeBudget(ctx, actor, this.#budget, ms);
      return result;
    };
    return {
      merge: async (stored, update) => requireResult(await charged(this.#crdt.merge(stored, update))),
      diff: async (stored, stateVector) => requireResult(await charged(this.#crdt.diff(stored, stateVector))),
      compact: async (stored) => {
        const result = await charged(this.#crdt.compact(stored));
        if (result === 'time' || result === 'memory') return null;
        // What can be merged can nearly always be loaded; where it can't, it is at least kept.
        return typeof result === 'string' ? stored : result;
      },
    };
  }
}

function requireResult(result: Uint8Array | CrdtFault): Uint8Array {
  if (typeof result !== 'string') return result;
  if (result === 'update') throw invalid('The state must be a Yjs update (encoding 1), which it is not');
  if (result === 'vector') throw invalid('sv must be a Yjs state vector as base64url');
  if (result === 'stored') throw invalid('What is stored for this room is no Yjs document: clear it, or replace it without merge=yjs');
  throw tooComplex(result);
}

/** The refusal of a document on which work takes more time or memory than it may. */
export function tooComplex(bound: 'time' | 'memory'): CollabError {
  return new CollabError('state_too_complex', `The Yjs document is too complex: merging or comparing it takes more ${bound} than the server allows`);
}

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);
