import { wireText } from '../../net/wire-text.ts';
import type { StoredEvent } from '../../ports/store.ts';
import { eventFrame } from './event-frame.ts';

/** Milliseconds between two checks of a stream's credential; the same as for WebSockets. */
const CHECK_MS = 1_000;

/** An open event stream, as the process that serves it manages it. */
export interface OpenStream {
  /**
   * Ends the stream if its credential is no longer valid, and otherwise takes over changes of its rights. Never
   * rejects.
   */
  checkCredential(): Promise<void>;
  end(): void;
}

/** The event streams that are open in this process. Once a second it ends those whose credential is no longer valid. */
export class OpenStreams {
  /** Milliseconds between two heartbeats of a stream. */
  readonly heartbeatMs: number;
  readonly #streams = new Set<OpenStream>();
  #timer: NodeJS.Timeout | undefined;
  #ended = false;
  #lastEvent: StoredEvent | null = null;
  #lastFrame: string | Uint8Array = '';

  constructor(heartbeatMs: number) {
    this.heartbeatMs = heartbeatMs;
  }

  /** The number of open streams. */
  get size(): number {
    return this.#streams.size;
  }

  /** Adds a stream. After `endAll` it is ended at once instead. */
  add(stream: OpenStream): void {
    if (this.#ended) return stream.end();
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#checkCredentials(), CHECK_MS).unref();
  }

  /** Removes a stream that has ended. Does nothing for one that was never added. */
  delete(stream: OpenStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /**
   * The frame of an event that was just committed and holds no file, which is the same for every stream of its
   * environment. It is encoded for the first stream and cached for the others.
   */
  liveFrame(epoch: string, event: StoredEvent): string | Uint8Array {
    if (event !== this.#lastEvent) {
      this.#lastEvent = event;
      this.#lastFrame = wireText(eventFrame(epoch, event, ''));
    }
    return this.#lastFrame;
  }

  /** Ends all streams, and every stream that is added later. Their clients reconnect and resume at their position. */
  endAll(): void {
    this.#ended = true;
    for (const stream of this.#streams) stream.end();
  }

  #checkCredentials(): void {
    for (const stream of this.#streams) void stream.checkCredential();
  }
}
