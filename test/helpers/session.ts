import type { Test } from 'tap';
import WebSocket from 'ws';
import type { CollabInbox, InboxSnapshot } from '../../src/client/inbox/inbox.ts';
import type { SocketConstructor } from '../../src/client/platform.ts';
import type { SessionOptions, SessionState } from '../../src/client/session/options.ts';
import { CollabSession } from '../../src/client/session/session.ts';
import type { CollabRoom } from '../../src/client/room/room.ts';
import type { RoomSnapshot } from '../../src/client/room/snapshot.ts';
import type { Tenant } from './service.ts';

/** A WebSocket whose connection a test can cut, as a lost network does: neither side hears of it at once. */
export class CuttableSockets {
  readonly #open = new Set<WebSocket>();
  /** Sockets that were opened. */
  opened = 0;
  readonly WebSocket: SocketConstructor;

  constructor() {
    const track = (socket: WebSocket): void => {
      this.opened++;
      this.#open.add(socket);
      socket.on('close', () => this.#open.delete(socket));
    };
    this.WebSocket = class extends WebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols, { perMessageDeflate: false });
        track(this);
      }
    } as unknown as SocketConstructor;
  }

  /** Destroys all connections. Returns how many there were. */
  cut(): number {
    const count = this.#open.size;
    for (const socket of this.#open) socket.terminate();
    return count;
  }
}

/** A session of a user of a tenant, which ends with the test. Reconnects at once unless `options` say otherwise. */
export function openSession(
  t: Test,
  tenant: Tenant,
  userId: string,
  options: Partial<SessionOptions> = {},
): CollabSession {
  const session = new CollabSession({
    serverUrl: tenant.service.urls[0] ?? '',
    publishableKey: tenant.publishableKey,
    token: () => tenant.token({ userId }),
    WebSocket: WebSocket as unknown as SocketConstructor,
    backoff: { firstMs: 5, maxMs: 20 },
    ...options,
  });
  t.teardown(() => session.close());
  return session;
}

/** Resolves once the state of a session is as expected. */
export function stateOf(
  session: CollabSession,
  isExpected: (state: SessionState) => boolean,
  withinMs = 60_000,
): Promise<SessionState> {
  return eventually(session, isExpected, withinMs);
}

/** Resolves once the snapshot of a room is as expected. */
export function snapshotOf(
  room: CollabRoom,
  isExpected: (snapshot: RoomSnapshot) => boolean,
  withinMs = 60_000,
): Promise<RoomSnapshot> {
  return eventually(room, isExpected, withinMs);
}

/** Resolves once the snapshot of an inbox is as expected. */
export function inboxOf(
  inbox: CollabInbox,
  isExpected: (snapshot: InboxSnapshot) => boolean,
  withinMs = 60_000,
): Promise<InboxSnapshot> {
  return eventually(inbox, isExpected, withinMs);
}

/** The common part of sessions, rooms and inboxes. */
interface Source<T> {
  subscribe(listener: () => void): () => void;
  getSnapshot(): T;
}

function eventually<T>(source: Source<T>, isExpected: (value: T) => boolean, withinMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = source.subscribe(() => check());
    const timer = setTimeout(() => {
      stop();
      reject(new Error(`still ${JSON.stringify(source.getSnapshot()).slice(0, 2_000)} after ${withinMs} ms`));
    }, withinMs);
    const check = (): void => {
      const value = source.getSnapshot();
      if (!isExpected(value)) return;
      clearTimeout(timer);
      stop();
      resolve(value);
    };
    check();
  });
}
