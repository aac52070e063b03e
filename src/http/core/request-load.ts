import { BoundedMap } from '../../lib/bounded-map.ts';

/** Requests of one event loop turn whose responses are sent at once. Some 5 ms of work. */
const MAX_PROMPT = 64;
/**
 * Responses 429 of one process to one address within a minute, after which each further one closes its connection. An
 * address that reaches N processes gets N times as many: what it may do is bounded by the rate limit, which counts in
 * shared memory; this only makes its refusals cheap.
 */
const MAX_REFUSALS = 100;
const REFUSALS_MS = 60_000;
const MAX_ADDRESSES = 10_000;

/** The refusals of one address in the current minute. */
interface Refusals {
  readonly since: number;
  count: number;
}

/**
 * Bounds what clients can make one process do in one turn of its event loop. A core handles the requests that a
 * connection has sent together (pipelining) in one callback, as long as each is answered before it parses the next, and
 * closes the connection if it is not. Once many requests came in a turn, responses are therefore held back until it is
 * over: connections that wait for their responses do not notice, and of the others the core drops what follows.
 */
export class RequestLoad {
  readonly #isProxy: (peer: string) => boolean;
  readonly #refusals = new BoundedMap<string, Refusals>(MAX_ADDRESSES);
  #inTurn = 0;

  /** @param isProxy whether many clients share the connections of this address, so that they must stay open */
  constructor(isProxy: (peer: string) => boolean) {
    this.#isProxy = isProxy;
  }

  /** Whether responses must wait for the end of the turn. */
  get isCrowded(): boolean {
    return this.#inTurn > MAX_PROMPT;
  }

  /** Counts a request. Must be called before it is handled. */
  add(): void {
    this.#inTurn++;
    if (this.#inTurn === 1) setImmediate(() => (this.#inTurn = 0));
  }

  /** Counts a response 429. Returns whether the connection is to be closed after it, because many came before. */
  refused(peer: string): boolean {
    if (this.#isProxy(peer)) return false;
    const now = performance.now();
    let refusals = this.#refusals.get(peer);
    if (refusals === undefined || now - refusals.since > REFUSALS_MS)
      this.#refusals.set(peer, (refusals = { since: now, count: 0 }));
    refusals.count++;
    return refusals.count > MAX_REFUSALS;
  }
}
