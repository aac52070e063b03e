import type { Test } from 'tap';
import { sharedSocketsOf } from '../../src/client/shared-socket.ts';
import type { Channel, Globals, Locks, SocketConstructor } from '../../src/client/platform.ts';
import type { Random } from '../fuzz/random.ts';
import { CuttableSockets } from './session.ts';

/** A lock that is held or waited for. */
interface LockRequest {
  readonly tab: BrowserTab;
  readonly held: () => void | Promise<void>;
  readonly end: (error?: Error) => void;
}

/**
 * The locks and channels that the tabs of a browser have in common, without a browser: a message reaches each other
 * channel of its name in the order of sending, after a delay of its own.
 */
export class FakeBrowser {
  readonly #locks = new Map<string, LockRequest[]>();
  readonly #channels = new Set<FakeChannel>();
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Opens a tab, which ends with the test. */
  open(t: Test): BrowserTab {
    const tab = new BrowserTab(this);
    t.teardown(() => tab.crash());
    return tab;
  }

  /** The tab that has the lock of a shared connection. */
  leader(): BrowserTab | undefined {
    return [...this.#locks].find(([name, queue]) => name.endsWith(']') && queue.length > 0)?.[1][0]?.tab;
  }

  locksOf(tab: BrowserTab): Locks {
    return {
      request: (name, { signal }, held) =>
        new Promise((resolve, reject) => {
          if (tab.isGone) return;
          const queue = this.#locks.get(name) ?? [];
          this.#locks.set(name, queue);
          const request: LockRequest = {
            tab,
            held,
            end: (error) => {
              const wasFirst = queue[0] === request;
              if (!queue.includes(request)) return;
              queue.splice(queue.indexOf(request), 1);
              if (error === undefined) resolve(undefined);
              else reject(error);
              if (wasFirst) this.#grant(queue);
            },
          };
          queue.push(request);
          signal?.addEventListener('abort', () => {
            if (queue[0] !== request) request.end(new Error('aborted'));
          });
          if (queue.length === 1) this.#grant(queue);
        }),
    };
  }

  channelOf(tab: BrowserTab, name: string): Channel {
    const channel = new FakeChannel(
      tab,
      name,
      (message) => {
        for (const other of this.#channels)
          if (other !== channel && other.name === name)
            other.deliver(structuredClone(message), this.#random.below(3), channel);
      },
      () => this.#channels.delete(channel),
    );
    this.#channels.add(channel);
    return channel;
  }

  /** What the browser does when a tab is gone. */
  end(tab: BrowserTab): void {
    for (const channel of this.#channels) if (channel.tab === tab) this.#channels.delete(channel);
    for (const queue of this.#locks.values())
      for (const request of queue.filter((each) => each.tab === tab)) request.end();
  }

  #grant(queue: LockRequest[]): void {
    setImmediate(() => {
      const [first] = queue;
      if (first === undefined || first.tab.isGone) return;
      Promise.resolve(first.held()).then(
        () => first.end(),
        () => first.end(),
      );
    });
  }
}

/** A tab: what a page of it has for globals. */
export class BrowserTab {
  readonly sockets = new CuttableSockets();
  /** The shared sockets of the page. */
  readonly WebSocket: SocketConstructor;
  isGone = false;
  /** A stopped tab gets no messages until it goes on. */
  isStopped = false;
  readonly #browser: FakeBrowser;
  readonly #listeners = new Map<string, Set<() => void>>();

  constructor(browser: FakeBrowser) {
    this.#browser = browser;
    const open = (name: string): Channel => browser.channelOf(this, name);
    const page: Globals = {
      WebSocket: this.sockets.WebSocket,
      BroadcastChannel: class {
        constructor(name: string) {
          return open(name);
        }
      } as unknown as new (name: string) => Channel,
      navigator: { locks: browser.locksOf(this) },
      addEventListener: (type, listener) =>
        void this.#listeners.set(type, (this.#listeners.get(type) ?? new Set()).add(listener)),
      removeEventListener: (type, listener) => void this.#listeners.get(type)?.delete(listener),
    };
    this.WebSocket = sharedSocketsOf(page);
  }

  /** Navigates away, with the events that a page gets. */
  leave(): void {
    for (const listener of this.#listeners.get('pagehide') ?? []) listener();
    this.crash();
  }

  /** Ends the tab without an event. */
  crash(): void {
    this.isGone = true;
    this.sockets.cut();
    this.#browser.end(this);
  }
}

class FakeChannel implements Channel {
  onmessage: ((event: { readonly data: unknown }) => void) | null = null;
  readonly tab: BrowserTab;
  readonly name: string;
  readonly #post: (message: unknown) => void;
  readonly #close: () => void;
  /** When the last message of each sender is delivered. */
  readonly #last = new Map<FakeChannel, Promise<void>>();
  #isClosed = false;

  constructor(tab: BrowserTab, name: string, post: (message: unknown) => void, close: () => void) {
    this.tab = tab;
    this.name = name;
    this.#post = post;
    this.#close = close;
  }

  postMessage(message: unknown): void {
    if (!this.tab.isGone) this.#post(message);
  }

  close(): void {
    this.#isClosed = true;
    this.#close();
  }

  /** Delivers a message after some turns of the event loop, and after those of the same sender. */
  deliver(message: unknown, turns: number, from: FakeChannel): void {
    const deliver = async (): Promise<void> => {
      for (let n = 0; n <= turns; n++) await new Promise((resolve) => setImmediate(resolve));
      if (!this.#isClosed && !this.tab.isGone && !this.tab.isStopped) this.onmessage?.({ data: message });
    };
    this.#last.set(from, (this.#last.get(from) ?? Promise.resolve()).then(deliver));
  }
}
