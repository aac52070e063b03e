import type { Listening, Publication } from './bus.ts';

/** The topics that a process subscribes to, or no longer does. */
export interface TopicChanges {
  /** Unique in the process. */
  readonly id: number;
  readonly subscribed: readonly string[];
  readonly unsubscribed: readonly string[];
}

/**
 * The messages between the bus of a process (`adapters/ipc`) and the relay of its machine (`cluster`): data by type. A
 * relay ignores what was sent before its first `peers`.
 */
export interface BusMessages {
  /**
   * Both ways, an announcement: these streams have grown up to these positions (null: ended); null if any stream may
   * have grown.
   */
  readonly announce: { readonly streams: readonly (readonly [stream: string, seq: number | null])[] | null };
  /** Both ways: the publications of one event loop iteration. */
  readonly publish: { readonly publications: readonly Publication[] };
  /** Process to relay, whenever it changes: which messages of the bus it listens to. */
  readonly listens: Listening;
  /** Relay to process, first, then whenever it changes: which messages any other process listens to. */
  readonly peers: Listening;
  /** Process to relay: from now on it is sent the publications of these topics, and no longer those of those. */
  readonly topics: TopicChanges;
  /** Relay to process: the `topics` with this id are in effect. */
  readonly subscribed: { readonly id: number };
}

/** A message between a bus and a relay. */
export type BusMessage = {
  readonly [T in keyof BusMessages]: { readonly type: T; readonly data: BusMessages[T] };
}[keyof BusMessages];
