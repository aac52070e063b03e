import { CollabError } from '../errors.ts';
import { FairGate } from '../lib/fair-gate.ts';
import { Spending } from '../lib/spending.ts';
import type { Crdt, CrdtFault, CrdtOutcome } from '../ports/crdt.ts';
import { actorKey } from './access.ts';
import type { Actor, Context } from './context.ts';

/** The part of the configuration that this needs. */
export interface CrdtConfig {
  readonly p2p: { readonly mergeSecondsPerMinute: number };
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
export type InTurn = <T>(work: (documents: Documents) => Promise<T>) => Promise<T>;

const WINDOW_MS = 60_000;
const MOST_ACCOUNTS = 10_000;
const MEGABYTE = 1024 * 1024;
/** What one actor may have waiting, and all together: requests, and bytes of their bodies. */
const MOST_WAITING = 32;
const MOST_WAITING_BYTES = 32 * MEGABYTE;
const MOST_WAITING_BYTES_OF_ALL = 128 * MEGABYTE;

/**
 * The work on CRDT documents of one process, shared fairly: actors take turns, what waits is bounded, and so is the time
 * that one actor takes in a minute.
 */
export class CrdtDesk {
  readonly #crdt: Crdt;
  readonly #secondsPerMinute: number;
  readonly #spent: Spending;
  readonly #gate = new FairGate(1);
  readonly #waiting = new Map<string, { requests: number; bytes: number }>();
  #waitingBytes = 0;

  /** @param now milliseconds of a monotonic clock */
  constructor(crdt: Crdt, { p2p: { mergeSecondsPerMinute } }: CrdtConfig, now?: () => number) {
    this.#crdt = crdt;
    this.#secondsPerMinute = mergeSecondsPerMinute;
    this.#spent = new Spending(mergeSecondsPerMinute * 1_000, WINDOW_MS, MOST_ACCOUNTS, now);
  }

  /**
   * Admits a request of an actor that will work on documents, and runs it. Throws `rate_limited` when the actor has used
   * its time, or has too much waiting.
   *
   * @param bytes what the request holds in memory
   */
  async admit<T>(actor: Actor, bytes: number, request: (inTurn: InTurn) => Promise<T>): Promise<T> {
    const key = actorKey(actor);
    this.#requireTime(key);
    const waiting = this.#enter(key, bytes);
    try {
      return await request((work) => this.#gate.run(key, () => this.#turn(key, work)));
    } finally {
      waiting.requests -= 1;
      waiting.bytes -= bytes;
      this.#waitingBytes -= bytes;
      if (waiting.requests === 0) this.#waiting.delete(key);
    }
  }

  /** Ends what runs. */
  close(): Promise<void> {
    return this.#crdt.close();
  }

  /** Time may have been used up while this waited. */
  async #turn<T>(key: string, work: (documents: Documents) => Promise<T>): Promise<T> {
    this.#requireTime(key);
    return work(this.#documentsFor(key));
  }

  #requireTime(key: string): void {
    const waitMs = this.#spent.waitMs(key, 1);
    if (waitMs === 0) return;
    const seconds = Math.ceil(waitMs / 1_000);
    throw new CollabError('rate_limited', `Merging and comparing shared states took more than ${this.#secondsPerMinute}s of a minute. Try again in ${seconds}s`, seconds);
  }

  #enter(key: string, bytes: number): { requests: number; bytes: number } {
    const waiting = this.#waiting.get(key) ?? { requests: 0, bytes: 0 };
    const isFirst = waiting.requests === 0;
    if (waiting.requests >= MOST_WAITING || (!isFirst && waiting.bytes + bytes > MOST_WAITING_BYTES)) {
      throw new CollabError('rate_limited', `At most ${MOST_WAITING} requests with ${MOST_WAITING_BYTES / MEGABYTE} MB may wait to be merged. Try again in 1s`, 1);
    }
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > MOST_WAITING_BYTES_OF_ALL) {
      throw new CollabError('rate_limited', 'The server has too much to merge. Try again in 1s', 1);
    }
    waiting.requests += 1;
    waiting.bytes += bytes;
    this.#waitingBytes += bytes;
    this.#waiting.set(key, waiting);
    return waiting;
  }

  #documentsFor(key: string): Documents {
    const charged = async (outcome: Promise<CrdtOutcome>): Promise<Uint8Array | CrdtFault> => {
      const { result, ms } = await outcome;
      this.#spent.spend(key, ms);
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

/** The documents of a context. Throws where there are none, which is a fault of ours. */
export function crdtIn({ crdt }: Context): CrdtDesk {
  if (crdt === undefined) throw new Error('this process merges no documents');
  return crdt;
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
