/**
 * The Bus carries one hint between the processes of a cluster: "something was committed, look at the log". It may lose,
 * repeat and reorder hints; the log is the truth, and every receiver also looks at it now and then by itself.
 */
export interface Bus {
  /**
   * Tells every other process that this one flushed everything up to `position` (`Store.onFlushed`).
   * Cheap: calls within one turn of the event loop travel as one, the highest position.
   */
  announce(position: number): void;
  /** Calls `listener` with the positions that other processes announce. Returns the way to stop. */
  onAnnounce(listener: (position: number) => void): () => void;
}
