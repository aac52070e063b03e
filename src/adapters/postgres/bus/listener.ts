import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../../lib/thrown.ts';
import { Connection } from '../connection.ts';
import type { ConnectionLost } from '../faults.ts';
import type { Target } from '../target.ts';

/** Pauses between attempts to connect, in milliseconds; each is shortened by up to a half, so that processes differ. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** What a `Listener` needs, and whom it tells. */
export interface ListenerOptions {
  readonly target: Target;
  readonly channels: readonly string[];
  readonly bounds: ListenerBounds;
  /** Sends a notification; `heardOwn` is called when it arrives. */
  readonly sendBeacon: () => Promise<void>;
  readonly onPayload: (payload: string) => void;
  /** Called when notifications arrive from now on; those before may have been missed. */
  readonly onHearing: () => void;
  /** Called once when they do not arrive any more, or cannot: with the reason. */
  readonly onDeaf: (reason: string) => void;
}

/** Bounds of a `Listener`, in milliseconds. */
export interface ListenerBounds {
  /** How often it is checked that notifications arrive. */
  readonly beaconMs: number;
  /** How long a beacon may take before the connection counts as deaf. */
  readonly deafMs: number;
  /** How long until it is tried again whether a connection that was deaf hears. */
  readonly retryDeafMs: number;
}

interface Opened {
  readonly connection: Connection;
  readonly ended: Promise<ConnectionLost>;
}

/** A connection that hears notifications, and is replaced whenever it does not. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #closed = new AbortController();
  #connection: Connection | undefined;
  #isHearing = false;
  /** Whether the reason for not hearing was reported. */
  #isDeafTold = false;
  #onOwn: () => void = () => {};
  #lastOwnAt = 0;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  get isHearing(): boolean {
    return this.#isHearing;
  }

  /** Makes the first connection, and from then on hears. Rejects if that connection cannot be made. */
  async start(): Promise<void> {
    const first = await this.#open();
    void this.#run(first);
  }

  /** Must be called with each notification of this process itself. */
  heardOwn(): void {
    this.#lastOwnAt = performance.now();
    this.#onOwn();
  }

  close(): void {
    this.#closed.abort();
    this.#connection?.close();
  }

  async #open(): Promise<Opened> {
    const { target, channels, onPayload } = this.#options;
    const connection = await Connection.open(target, 'collab bus');
    if (this.#closed.signal.aborted) connection.close();
    this.#connection = connection;
    const ended = new Promise<ConnectionLost>((resolve) => connection.onEnd(resolve));
    connection.onNotification((_channel, payload) => onPayload(payload));
    await connection.run(channels.map((channel) => `listen ${channel}`).join(';'));
    return { connection, ended };
  }

  async #run(first: Opened): Promise<void> {
    let opened: Opened | undefined = first;
    for (let pause = FIRST_PAUSE_MS; !this.#closed.signal.aborted;) {
      let reason: string;
      let wait = pause * (1 - Math.random() / 2);
      try {
        opened ??= await this.#open();
        if (await this.#hears(opened)) {
          pause = wait = FIRST_PAUSE_MS;
          reason = await this.#hearing(opened);
        } else {
          reason =
            'notifications do not arrive, as through a pooler in transaction mode: let the URL name PostgreSQL itself';
          wait = this.#options.bounds.retryDeafMs;
        }
      } catch (error) {
        reason = messageOf(error);
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
      this.#connection?.close();
      opened = undefined;
      this.#tellDeaf(reason);
      await this.#wait(wait);
    }
  }

  /** Tells once that nothing is heard: a reconnection that fails again says nothing new. */
  #tellDeaf(reason: string): void {
    this.#isHearing = false;
    if (this.#isDeafTold || this.#closed.signal.aborted) return;
    this.#isDeafTold = true;
    this.#options.onDeaf(reason);
  }

  /** Whether the process hears itself. Rejects if that cannot be found out. */
  async #hears({ ended }: Opened): Promise<boolean> {
    const lost = ended.then((error) => {
      throw error;
    });
    lost.catch(() => {});
    const heard = new Promise<true>((resolve) => (this.#onOwn = () => resolve(true)));
    await Promise.race([this.#options.sendBeacon(), lost]);
    return Promise.race([heard, lost, this.#wait(this.#options.bounds.deafMs).then(() => false)]);
  }

  /** Returns the reason once the connection does not hear any more. */
  async #hearing(opened: Opened): Promise<string> {
    // A machine that is gone, or a process that was stopped, must not hold the queue of notifications of the server.
    await opened.connection.run("set tcp_user_timeout = '60s'");
    this.#isHearing = true;
    this.#isDeafTold = false;
    this.#options.onHearing();
    const { beaconMs, deafMs } = this.#options.bounds;
    for (;;) {
      const since = performance.now();
      const lost = await Promise.race([opened.ended, this.#wait(beaconMs)]);
      if (lost !== undefined) return lost.message;
      if (this.#closed.signal.aborted) return 'it was closed';
      if (this.#lastOwnAt > since) continue;
      try {
        if (!(await this.#hears(opened)))
          return `a notification of this process itself did not arrive within ${deafMs / 1_000} s`;
      } catch (error) {
        // What could not be sent says nothing about what is heard.
        if (!opened.connection.isOpen) return messageOf(error);
      }
    }
  }

  /** Resolves after so many milliseconds, or when it is closed. */
  async #wait(ms: number): Promise<undefined> {
    await delay(ms, undefined, { signal: this.#closed.signal, ref: false }).catch(() => {});
  }
}
