import { type Globals, newSocket, platform, type Socket, type SocketConstructor } from './platform.ts';
import { Hub } from './shared/hub.ts';
import { nameOf } from './shared/identity.ts';

// The entry of `collab/shared-socket`: one connection for the tabs of a browser.

/** Makes the constructor of the shared sockets of a page. */
export function sharedSocketsOf(page: Globals): SocketConstructor {
  const hubs = new Map<string, Hub>();

  const hubOf = (name: string | null): Hub | null => {
    const locks = page.navigator?.locks;
    if (name === null || locks === undefined || page.BroadcastChannel === undefined) return null;
    const hub =
      hubs.get(name) ??
      new Hub({ page, locks, channel: new page.BroadcastChannel(name), name, onEnd: () => hubs.delete(name) });
    hubs.set(name, hub);
    return hub;
  };

  return class SharedSocket implements Socket {
    onopen: ((event: object) => void) | null = null;
    onmessage: ((event: { readonly data: unknown }) => void) | null = null;
    onerror: ((event: object) => void) | null = null;
    onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null = null;
    readonly #id = crypto.randomUUID();
    readonly #hub: Hub | null;
    /** A connection of its own. */
    #direct: Socket | null = null;
    #isOpen = false;

    constructor(url: string, protocols: string[]) {
      this.#hub = hubOf(nameOf(url, protocols));
      const closed = (code: number, reason: string): void => this.onclose?.({ code, reason });
      const alone = (): void => {
        try {
          this.#connect(url, protocols);
        } catch (error) {
          closed(1006, String(error));
        }
      };
      if (this.#hub === null) this.#connect(url, protocols);
      else this.#hub.open({ id: this.#id, url, protocols, alone, receive: (data) => this.#receive(data), closed });
    }

    send(data: string): void {
      if (this.#direct === null) this.#hub?.send(this.#id, data);
      else this.#direct.send(data);
    }

    close(code = 1000, reason = ''): void {
      if (this.#direct !== null) return this.#direct.close(code, reason);
      this.#hub?.close(this.#id);
      queueMicrotask(() => this.onclose?.({ code, reason }));
    }

    #receive(data: string): void {
      if (!this.#isOpen) this.onopen?.({});
      this.#isOpen = true;
      this.onmessage?.({ data });
    }

    #connect(url: string, protocols: string[]): void {
      this.#direct = newSocket(page, url, protocols);
      this.#direct.onopen = (event) => this.onopen?.(event);
      this.#direct.onmessage = (event) => this.onmessage?.(event);
      this.#direct.onerror = (event) => this.onerror?.(event);
      this.#direct.onclose = (event) => this.onclose?.(event);
    }
  };
}

/**
 * A WebSocket that the tabs of a browser share, for `new CollabSession({ WebSocket: SharedSocket })`: tabs of the same
 * origin, server, publishable key and identity of the token have one connection (docs/sdk.md, "One connection for all
 * tabs"). Where that is not possible it is a WebSocket of its own.
 */
export const SharedSocket: SocketConstructor = sharedSocketsOf(platform);
