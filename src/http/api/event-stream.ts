import { yieldToEventLoop } from '../../lib/concurrency/event-loop.ts';
import type { Actor } from '../../domain/access/actor.ts';
import { CollabError } from '../../model/errors.ts';
import { readEvents } from '../../domain/events/read-events.ts';
import { type EventViewer, isVisibleTo, viewerOf } from '../../domain/events/visibility.ts';
import { containsFileUrls } from '../../domain/files/file-urls.ts';
import { epochOf, streamOf } from '../../domain/events/streams.ts';
import type { Store, StoredEvent } from '../../ports/store.ts';
import { eventStreamHead } from '../core/content-headers.ts';
import { eventFrame } from './event-frame.ts';
import type { OpenStream, OpenStreams } from './open-streams.ts';
import type { Exchange } from '../core/exchange.ts';
import type { Header } from '../../net/response-headers.ts';

/** A position in the stream that `epoch` names. */
export interface StreamPosition {
  readonly epoch: string;
  readonly seq: number;
}

/** Options of one event stream. */
export interface EventStreamOptions {
  readonly store: Store;
  /** Takes the response; the stream owns it from `start` on. */
  readonly exchange: Exchange;
  /** Headers of the response besides content type and caching. */
  readonly headers: readonly Header[];
  /** The registry that the stream adds itself to. */
  readonly streams: OpenStreams;
  readonly actor: Actor;
  /** Authenticates the request's credential again. Rejects if it is no longer valid. */
  readonly reauthenticate: () => Promise<Actor>;
  /** The beginning of file URLs, without a slash at its end; '' leaves them as paths. */
  readonly baseUrl: string;
}

/** Events per read of the log, in number and characters. */
const PAGE = { limit: 200, maxChars: 256 * 1024 };
/** Characters gathered for one write. About as many are buffered for a slow client. */
const WRITE_SIZE = 64 * 1024;
const RECONNECT_MS = 2000;
/** An empty comment line, which every client of server-sent events skips. */
const EMPTY_COMMENT = ':\n';

/**
 * The log of an environment as server-sent events: every event that the actor may see, once, in order, without a gap.
 * What a slow client has not taken stays in the log and is read when the client is ready, so a stream buffers little.
 */
export class EventStream implements OpenStream {
  readonly #options: EventStreamOptions;
  readonly #streamName: string;
  readonly #epoch: string;
  #actor: Actor;
  /** What `#actor` may see. */
  #viewer: EventViewer;
  /** The last event that was read. */
  #position = 0;
  /** The last position that was sent to the client. */
  #sentPosition = 0;
  #reading = true;
  /** Whether events were committed that the read in progress may not see. */
  #missed = false;
  /** Whether the client is behind: nothing is sent until it has drained. */
  #full = false;
  #isDeleted = false;
  /** Whether the response has started. */
  #hasStarted = false;
  #unfollow: () => void = () => {};
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#actor = options.actor;
    this.#viewer = viewerOf(options.actor);
    this.#streamName = streamOf(options.actor.environment);
    this.#epoch = epochOf(options.store, options.actor.environment);
  }

  /**
   * Starts the response. The first message, of the type `welcome`, names the position where the stream starts and says
   * whether all events after `since` follow (`recovered`). If the epoch has changed or the log was trimmed, none of
   * them follow. Rejects if the log cannot be read before the response has started.
   *
   * @param since null to start with the next commit
   */
  async start(since: StreamPosition | null): Promise<void> {
    const { exchange, store, headers, streams } = this.#options;
    // Follow before the first read, so that no event falls between the two.
    this.#unfollow = store.follow((stream, event) => {
      if (stream !== this.#streamName) return;
      // Null: the environment was deleted. If it is imported again, the client has to reconnect to the new stream.
      if (event === null) this.#onDeleted();
      else this.#onCommit(event);
    });
    exchange.onDisconnect(() => this.#close());
    try {
      const recovered = await this.#seek(since);
      if (exchange.isFinished) return;
      if (this.#isDeleted) throw new CollabError('environment_not_found', 'The environment has been deleted');
      this.#hasStarted = true;
      exchange.startStream(200, [eventStreamHead, ...headers]);
      exchange.onDrain(EMPTY_COMMENT, () => this.#onDrain());
      this.#heartbeat = setInterval(() => this.#sendHeartbeat(), streams.heartbeatMs).unref();
      const welcome = JSON.stringify({ epoch: this.#epoch, seq: this.#position, recovered });
      this.#write(`retry: ${RECONNECT_MS}\nevent: welcome\nid: ${this.#epoch}:${this.#position}\ndata: ${welcome}\n\n`);
      streams.add(this);
    } catch (error) {
      this.#close();
      throw error;
    }
    this.#reading = false;
    await this.#read();
  }

  #onDeleted(): void {
    this.#isDeleted = true;
    // Before the start of the response, `start` still reports this as an error.
    if (this.#hasStarted) this.end();
  }

  /** Ends the stream. */
  end(): void {
    this.#close();
    this.#options.exchange.endStream();
  }

  /**
   * Ends the stream if its credential is no longer valid, and otherwise takes over changes of its rights. Never
   * rejects.
   */
  async checkCredential(): Promise<void> {
    try {
      this.#actor = await this.#options.reauthenticate();
      this.#viewer = viewerOf(this.#actor);
    } catch {
      this.end();
      return;
    }
    // The environment was deleted and imported again before this stream followed the store.
    if (streamOf(this.#actor.environment) !== this.#streamName) this.end();
  }

  async #seek(since: StreamPosition | null): Promise<boolean> {
    const { store } = this.#options;
    const last = await store.lastSeq(this.#streamName);
    const oldest = await store.oldestSeq(this.#streamName);
    const recovered = since !== null && since.epoch === this.#epoch && since.seq <= last && since.seq >= oldest - 1;
    this.#position = recovered ? since.seq : last;
    this.#sentPosition = this.#position;
    return recovered;
  }

  #onCommit(event: StoredEvent): void {
    if (this.#reading || this.#full) this.#missed = true;
    else if (event.seq === this.#position + 1) this.#sendLive(event);
    else if (event.seq > this.#position) void this.#read();
  }

  #onDrain(): void {
    this.#full = false;
    if (!this.#reading) void this.#read();
  }

  /** Sends the events after the position until none are left or the client is behind. */
  async #read(): Promise<void> {
    this.#reading = true;
    const { store, exchange } = this.#options;
    try {
      do {
        this.#missed = false;
        const events = await readEvents(store, this.#actor.environment, this.#position, PAGE);
        if (exchange.isFinished) return;
        const [first] = events;
        if (first !== undefined && first.seq !== this.#position + 1) return this.end();
        this.#send(events);
        // An empty page is the end. Not a short one: long events fill it too.
        if (first !== undefined) this.#missed = true;
        await yieldToEventLoop();
      } while (this.#missed && !this.#full);
    } catch {
      // The log cannot be read. The client reconnects and resumes at its position.
      this.end();
    } finally {
      this.#reading = false;
    }
  }

  #sendLive(event: StoredEvent): void {
    this.#position = event.seq;
    if (!isVisibleTo(this.#viewer, event.text, 'hidden')) return;
    this.#sentPosition = event.seq;
    const { baseUrl, streams } = this.#options;
    const isShared = baseUrl === '' || !containsFileUrls(event.text);
    this.#write(isShared ? streams.liveFrame(this.#epoch, event) : eventFrame(this.#epoch, event, baseUrl));
  }

  /** Sends events until the client is behind; the rest stays in the log. */
  #send(events: readonly StoredEvent[]): void {
    let text = '';
    for (const event of events) {
      if (this.#full) return;
      this.#position = event.seq;
      if (!isVisibleTo(this.#viewer, event.text, 'hidden')) continue;
      this.#sentPosition = event.seq;
      text += eventFrame(this.#epoch, event, this.#options.baseUrl);
      if (text.length < WRITE_SIZE) continue;
      this.#write(text);
      text = '';
    }
    if (text !== '') this.#write(text);
  }

  /** Sends a heartbeat, which also moves the client's position past events that it may not see. */
  #sendHeartbeat(): void {
    if (this.#full) return;
    const moved = this.#sentPosition === this.#position ? '' : `id: ${this.#epoch}:${this.#position}\n`;
    this.#sentPosition = this.#position;
    this.#write(`${moved}: heartbeat\n\n`);
  }

  #write(part: string | Uint8Array): void {
    if (!this.#options.exchange.write(part)) this.#full = true;
  }

  #close(): void {
    this.#unfollow();
    clearInterval(this.#heartbeat);
    this.#options.streams.delete(this);
  }
}
