/** Commands of the harness to the sink, sent over Node's IPC channel between parent and child. */
export type SinkCommand =
  | {
      readonly do: 'open';
      readonly port: number;
      readonly path: string;
      /** The header lines of each socket to open, every line ending in CRLF. */
      readonly headers: readonly string[];
      /** Whether a socket counts as open only after the server has greeted it. */
      readonly greeted: boolean;
    }
  | {
      readonly do: 'burst';
      readonly port: number;
      /** Complete HTTP requests. All are sent at once, each over its own connection, which is opened before. */
      readonly requests: readonly string[];
    }
  | { readonly do: 'close' };

/** The result of a burst. */
export interface BurstResult {
  /** Milliseconds from the first byte of the first request to the last event on the last socket. */
  readonly milliseconds: number;
  readonly deliveries: number;
  /** Sockets that did not receive exactly one event per request. */
  readonly incomplete: number;
  /** The fewest and the most events that a socket received. */
  readonly fewest: number;
  readonly most: number;
  /** Requests answered with another status than 201. */
  readonly refused: number;
}

/** The sink's replies, one per command. */
export type SinkAnswer =
  | {
      readonly done: 'open';
      readonly milliseconds: number;
      /** Attempts that the server cut off; each was repeated. */
      readonly lost: number;
    }
  | ({ readonly done: 'burst' } & BurstResult)
  | { readonly done: 'close' }
  | { readonly done: 'failed'; readonly reason: string };
