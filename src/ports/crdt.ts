/**
 * Why an operation has no result. `update`, `stored`, `vector`: that argument is not valid. `time`, `memory`: the
 * operation was ended because it exceeded its limit.
 */
export type CrdtFault = 'update' | 'stored' | 'vector' | 'time' | 'memory';

/** The result of an operation, and how many milliseconds it took. */
export interface CrdtOutcome {
  readonly result: Uint8Array | CrdtFault;
  readonly ms: number;
}

/**
 * Operations on Yjs documents, which are encoded as updates (encoding 1). They do not block the event loop and run one
 * after the other, in the order of the calls. Each is limited in time and memory; one that exceeds a limit is ended and
 * resolves with a fault. The caller must not use the arguments afterwards.
 */
export interface Crdt {
  /**
   * Merges an update into a document. Bytes that follow a valid update are the fault `update`: they are what is left of
   * an update of another encoding.
   *
   * @param stored null for an empty document
   */
  merge(stored: Uint8Array | null, update: Uint8Array): Promise<CrdtOutcome>;
  /** Returns what a document has and one with this state vector lacks. */
  diff(stored: Uint8Array, stateVector: Uint8Array): Promise<CrdtOutcome>;
  /** Returns the same document without what merging leaves behind, such as deleted content. */
  compact(stored: Uint8Array): Promise<CrdtOutcome>;
  /** Ends the running operation. Pending and later calls reject. */
  close(): Promise<void>;
}
