/** A message to the other processes of a cluster. */
export interface Publication {
  readonly topic: string;
  readonly text: string;
}

/**
 * The Bus carries announcements and publications between the processes of a cluster; a process does not receive its own.
 * An announcement says that a process has flushed commits, so that the others look for them (`Store.poll`). Announcements
 * may be lost, repeated and reordered: the store has the truth, and every process also polls it periodically. A publication
 * is about nothing that is stored. It arrives at most once, and the publications of one process arrive in its order.
 * `test/conformance/bus.ts` asserts every sentence below for every adapter.
 */
export interface Bus {
  /**
   * Announces to every other process that this one has flushed everything up to `position` (`Store.onFlushed`). Calls
   * within one event loop iteration are sent as one, with the highest position. A position that is not above all earlier
   * ones of this process is not sent.
   */
  announce(position: number): void;
  /**
   * Calls `listener`, which must not throw, with the positions that other processes announce. Returns a function that
   * unsubscribes it.
   */
  onAnnounce(listener: (position: number) => void): () => void;

  /**
   * Sends a publication to every other process. It is lost if it would make more than `MAX_WAITING` characters wait to be
   * sent.
   */
  publish(publication: Publication): void;
  /**
   * Calls `listener`, which must not throw, with the publications of other processes. Returns a function that unsubscribes
   * it.
   */
  onPublish(listener: (publication: Publication) => void): () => void;
}

/** Maximum number of characters, of topics and texts, that may wait to be sent from one process to the next. */
export const MAX_WAITING = 8 * 1024 * 1024;
