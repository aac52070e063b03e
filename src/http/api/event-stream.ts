import type { Actor } from '../../domain/context.ts';
import { withoutErased } from '../../domain/users/erasure.ts';
import { seesEvent } from '../../domain/events/events.ts';
import { holdsFileUrls, withFileUrls } from '../../domain/files/file-urls.ts';
import { epochOf, streamOf } from '../../domain/events/streams.ts';
import { wireText } from '../../net/wire-text.ts';
import type { StoredEvent } from '../../ports/store.ts';
import { streamHead } from './answer.ts';
import type { RequestParts } from './api-request.ts';

/** A position in the log named by `epoch`. */
export interface LogPosition {
  readonly epoch: string;
  readonly seq: number;
}

/** Events read at once. */
const PAGE = 200;
/** Characters gathered for one write, and about as many are kept for a slow client. */
const WRITE_SIZE = 64 * 1024;
const RECONNECT_MS = 2000;
/** A line that every reader of server-sent events skips. */
const NOTHING = ':\n';

/** Milliseconds between two checks of a stream's credential: as often as those of WebSockets. */
const CHECK_MS = 1_000;

/** The streams of events that are open in this process. Once a second it ends those whose credential is no longer valid. */
export class OpenStreams {
  /** Milliseconds between two signs of life. */
  readonly heartbeatMs: number;
  readonly #streams = new Set<EventStream>();
  #timer: NodeJS.Timeout | undefined;
  #ended = false;
  #lastEvent: StoredEvent | null = null;
  #lastFrame: string | Uint8Array = '';

  constructor(heartbeatMs: number) {
    this.heartbeatMs = heartbeatMs;
  }

  /** How many there are. */
  get size(): number {
    return this.#streams.size;
  }

  add(stream: EventStream): void {
    if (this.#ended) return stream.end();
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#check(), CHECK_MS).unref();
  }

  delete(stream: EventStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** An event that was just committed and holds no file, as it is sent to every stream of its environment: encoded for the first, kept for the others. */
  liveFrame(epoch: string, event: StoredEvent): string | Uint8Array {
    if (event !== this.#lastEvent) {
      this.#lastEvent = event;
      this.#lastFrame = wireText(frameOf(epoch, event, ''));
    }
    return this.#lastFrame;
  }

  /** Ends all of them, and every one that is still to come. Their clients come back where they left off. */
  endAll(): void {
    this.#ended = true;
    for (const stream of this.#streams) stream.end();
  }

  #check(): void {
    for (const stream of this.#streams) void stream.checkCredential();
  }
}

/**
 * The log of an environment as server-sent events: every event that the actor may see once, in order, without a gap.
 * What a slow client has not taken stays in the log and is read when it is ready, so a stream holds little memory.
 */
export class EventStream {
  readonly #parts: RequestParts;
  /** Its name in the store; and what the client knows it by. */
  readonly #stream: string;
  readonly #epoch: string;
  readonly #baseUrl: string;
  #actor: Actor;
  #position = 0;
  /** The position that the client knows as its last. */
  #told = 0;
  #reading = true;
  #missed = false;
  #full = false;
  #unfollow: () => void = () => {};
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(parts: RequestParts, actor: Actor) {
    this.#parts = parts;
    this.#baseUrl = parts.baseUrl();
    this.#actor = actor;
    this.#stream = streamOf(actor.environment);
    this.#epoch = epochOf(parts.ctx.store, actor.environment);
  }

  /**
   * Starts the answer. The first message, of the type `welcome`, says where the stream starts and whether all after
   * `since` follow (`recovered`); where they don't, because the log is another or was trimmed, none of them does.
   *
   * @param since null to start with what happens from now on
   */
  async start(since: LogPosition | null): Promise<void> {
    const { exchange, ctx, headers, streams } = this.#parts;
    // Followed before anything is read, so that nothing falls between the two.
    this.#unfollow = ctx.store.follow((stream, event) => {
      if (stream !== this.#stream) return;
      // The environment has been deleted. It may be imported again: then the client comes back to another stream.
      if (event === null) this.end();
      else this.#follow(event);
    });
    exchange.onGone(() => this.#close());
    try {
      const recovered = await this.#seek(since);
      if (exchange.over) return;
      exchange.startStream(200, [streamHead, ...headers]);
      exchange.onDrain(NOTHING, () => this.#drained());
      this.#heartbeat = setInterval(() => this.#beat(), streams.heartbeatMs).unref();
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

  /** Ends the stream. */
  end(): void {
    this.#close();
    this.#parts.exchange.endStream();
  }

  /** Ends the stream when its credential is no longer valid, and takes over what has changed of its rights. */
  async checkCredential(): Promise<void> {
    try {
      this.#actor = await this.#parts.renew();
    } catch {
      this.end();
      return;
    }
    // It was deleted and imported before this stream was followed.
    if (streamOf(this.#actor.environment) !== this.#stream) this.end();
  }

  async #seek(since: LogPosition | null): Promise<boolean> {
    const { store } = this.#parts.ctx;
    const last = await store.lastSeq(this.#stream);
    const oldest = await store.oldestSeq(this.#stream);
    const recovered = since !== null && since.epoch === this.#epoch && since.seq <= last && since.seq >= oldest - 1;
    this.#position = recovered ? since.seq : last;
    this.#told = this.#position;
    return recovered;
  }

  #follow(event: StoredEvent): void {
    if (this.#reading || this.#full) this.#missed = true;
    else if (event.seq === this.#position + 1) this.#sendLive(event);
    else if (event.seq > this.#position) void this.#read();
  }

  #drained(): void {
    this.#full = false;
    if (!this.#reading) void this.#read();
  }

  /** Sends what the log holds past the position, until that is all or the client is behind. */
  async #read(): Promise<void> {
    this.#reading = true;
    try {
      do {
        this.#missed = false;
        const { store } = this.#parts.ctx;
        const events = await withoutErased(store, this.#actor.environment.id, await store.events(this.#stream, this.#position, PAGE));
        if (this.#parts.exchange.over) return;
        const [first] = events;
        if (first !== undefined && first.seq !== this.#position + 1) return this.end();
        this.#send(events);
        if (events.length === PAGE) this.#missed = true;
      } while (this.#missed && !this.#full);
    } catch {
      // The log cannot be read: the client comes back to where it is.
      this.end();
    } finally {
      this.#reading = false;
    }
  }

  #sendLive(event: StoredEvent): void {
    this.#position = event.seq;
    if (!seesEvent(this.#actor, event.text)) return;
    this.#told = event.seq;
    const isShared = this.#baseUrl === '' || !holdsFileUrls(event.text);
    this.#write(isShared ? this.#parts.streams.liveFrame(this.#epoch, event) : frameOf(this.#epoch, event, this.#baseUrl));
  }

  /** Sends events until the client is behind; the rest stays in the log. */
  #send(events: readonly StoredEvent[]): void {
    let text = '';
    for (const event of events) {
      if (this.#full) return;
      this.#position = event.seq;
      if (!seesEvent(this.#actor, event.text)) continue;
      this.#told = event.seq;
      text += frameOf(this.#epoch, event, this.#baseUrl);
      if (text.length < WRITE_SIZE) continue;
      this.#write(text);
      text = '';
    }
    if (text !== '') this.#write(text);
  }

  /** A sign of life, which also moves the client's position past events that it may not see. */
  #beat(): void {
    if (this.#full) return;
    const moved = this.#told === this.#position ? '' : `id: ${this.#epoch}:${this.#position}\n`;
    this.#told = this.#position;
    this.#write(`${moved}: heartbeat\n\n`);
  }

  #write(part: string | Uint8Array): void {
    if (!this.#parts.exchange.write(part)) this.#full = true;
  }

  #close(): void {
    this.#unfollow();
    clearInterval(this.#heartbeat);
    this.#parts.streams.delete(this);
  }
}

function frameOf(epoch: string, { seq, text }: StoredEvent, baseUrl: string): string {
  return `id: ${epoch}:${seq}\ndata: ${withFileUrls(text, baseUrl)}\n\n`;
}
