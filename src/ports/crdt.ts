/**
 * Why a piece of work has no result. `update`, `stored` and `vector` are not what they should be; `time` and `memory`: the
 * work was ended because it used more than its bound.
 */
export type CrdtFault = 'update' | 'stored' | 'vector' | 'time' | 'memory';

/** What became of a piece of work, and how many milliseconds it took. */
export interface CrdtOutcome {
  readonly result: Uint8Array | CrdtFault;
  readonly ms: number;
}

/**
 * What the server does with Yjs documents, which it keeps as updates (encoding 1). Nothing here holds up the event loop.
 * Every call is bounded in time and memory; one that passes a bound is ended and resolves with a fault. Calls run one after
 * the other, in their order. The arguments may be used up: a caller does not read them again.
 */
export interface Crdt {
  /**
   * The document that has what both have. Whatever trails a valid update is dropped.
   *
   * @param stored null for no document yet
   */
  merge(stored: Uint8Array | null, update: Uint8Array): Promise<CrdtOutcome>;
  /** What a document has that one with this state vector lacks. */
  diff(stored: Uint8Array, stateVector: Uint8Array): Promise<CrdtOutcome>;
  /** The same document without what merging has left over, such as the content of what was deleted. */
  compact(stored: Uint8Array): Promise<CrdtOutcome>;
  /** Ends what runs, whose callers are rejected. */
  close(): Promise<void>;
}
