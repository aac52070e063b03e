/** What the harness asks of the sink, by the message channel that Node opens between parent and child. */
export type SinkCommand =
  | {
      readonly do: 'open';
      readonly port: number;
      readonly path: string;
      /** Header lines of each socket, every line ending in CRLF; as many sockets are opened. */
      readonly headers: readonly string[];
      /** Whether a socket counts as open only when the server has greeted it. */
      readonly greeted: boolean;
    }
  | {
      readonly do: 'burst';
      readonly port: number;
      /** Whole HTTP requests; all are sent at once, each over a connection of its own that is opened before. */
      readonly requests: readonly string[];
    }
  | { readonly do: 'close' };

/** How a burst went. */
export interface BurstResult {
  /** Milliseconds from the first byte of the first request to the last event at the last socket. */
  readonly milliseconds: number;
  readonly deliveries: number;
  /** Sockets that did not get exactly one event per request. */
  readonly incomplete: number;
  /** The fewest and the most events that a socket got. */
  readonly fewest: number;
  readonly most: number;
  /** Requests answered by anything but 201. */
  readonly refused: number;
}

/** What the sink answers, once per command. */
export type SinkAnswer =
  | {
      readonly done: 'open';
      readonly milliseconds: number;
      /** Tries that the server cut off; each was made again. */
      readonly lost: number;
    }
  | ({ readonly done: 'burst' } & BurstResult)
  | { readonly done: 'close' }
  | { readonly done: 'failed'; readonly reason: string };
