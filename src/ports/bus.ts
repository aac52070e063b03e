/** A message to whoever in the cluster cares for its topic. */
export interface Publication {
  readonly topic: string;
  readonly text: string;
}

/**
 * The Bus carries two things between the processes of a cluster. A hint: "something was committed, look at the log". It
 * may lose, repeat and reorder hints; the log is the truth, and every receiver also looks at it now and then by itself.
 * And publications, which stand for nothing that is stored: each arrives at most once, those of one process in its order.
 */
export interface Bus {
  /**
   * Tells every other process that this one flushed everything up to `position` (`Store.onFlushed`).
   * Cheap: calls within one turn of the event loop travel as one, the highest position.
   */
  announce(position: number): void;
  /** Calls `listener` with the positions that other processes announce. Returns the way to stop. */
  onAnnounce(listener: (position: number) => void): () => void;

  /**
   * Tells every other process, whatever topics it cares for. Calls within one turn of the event loop travel together; when
   * more than `MAX_WAITING` characters wait, what is published is lost.
   */
  publish(publication: Publication): void;
  /** Calls `listener` with what other processes publish. Returns the way to stop. */
  onPublish(listener: (publication: Publication) => void): () => void;
}

/** Characters of publications that may wait on their way from one process to the next. */
export const MAX_WAITING = 8 * 1024 * 1024;
