import type { StreamEvent } from '../../model/frames.ts';
import type { UserSummary } from '../../model/user.ts';
import { Emitter, Observable } from '../emitter.ts';
import { CollabError } from '../errors.ts';
import type { CollabFiles } from '../files/files.ts';
import { SessionFiles } from '../files/session-files.ts';
import { fetchResponse } from '../http.ts';
import type { CollabInbox } from '../inbox/inbox.ts';
import { SessionInbox } from '../inbox/session-inbox.ts';
import { platform, type Unsubscribe } from '../platform.ts';
import { LiveRoom } from '../room/live-room.ts';
import type { CollabRoom } from '../room/room.ts';
import { UserDirectory } from '../users.ts';
import { Backoff } from './backoff.ts';
import { Connection } from './connection.ts';
import { Credentials } from './credentials.ts';
import type { SessionOptions, SessionState } from './options.ts';
import type { SessionLink } from './link.ts';
import { Requests } from './requests.ts';

/**
 * The connection of one user of a page to a server. It connects, resumes where it was after every loss, renews the
 * token, and hands out rooms, files and the inbox, all of which share the connection.
 *
 * ```ts
 * const session = new CollabSession({
 *   serverUrl: 'https://comments.example.com',
 *   publishableKey: 'pk_…',
 *   token: async () => (await fetch('/collab-token')).text(),
 * });
 * const room = session.room('docs/intro');
 * room.subscribe(() => render(room.getSnapshot()));
 * await room.createThread({ body: 'Hello', position: { x: 0.5, y: 0.5 } });
 * ```
 */
export class CollabSession {
  readonly #link: SessionLink = {
    requests: new Requests(),
    isLive: () => this.#connection.isLive,
    wake: () => {
      if (this.#connection.state.status === 'connecting') this.#connection.open();
    },
    notifyEnd: (part) => {
      const { status, error } = this.#connection.state;
      if (status === 'closed') part.ended(error ?? new CollabError('closed', 'The session was closed.'));
    },
  };
  readonly #connection: Connection;
  readonly #files: SessionFiles;
  readonly #inbox: SessionInbox;
  readonly #users: UserDirectory;
  readonly #rooms = new Map<string, LiveRoom>();
  readonly #observers = new Observable();
  readonly #events = new Emitter<{ event: StreamEvent }>();
  readonly #request: (path: string, init: RequestInit) => Promise<Response>;

  /** @throws {CollabError} `invalid_request` if an option is missing or of the wrong form */
  constructor(options: SessionOptions) {
    const serverUrl = readServerUrl(options.serverUrl);
    const credentials = new Credentials(readKey(options.publishableKey), readProvider(options.token));
    const doFetch = options.fetch ?? ((...call) => fetch(...call));
    this.#files = new SessionFiles({ serverUrl, credentials, fetch: doFetch });
    this.#request = (path, init) =>
      credentials.authorize((headers) =>
        fetchResponse(
          doFetch,
          `${serverUrl}/api/v1${path}`,
          { ...init, headers: { ...(init.headers as Record<string, string> | undefined), ...headers } },
          path,
        ),
      );
    this.#inbox = new SessionInbox(this.#link);
    this.#users = new UserDirectory(this.#link.requests, () => {
      for (const room of this.#rooms.values()) room.changed();
    });
    this.#connection = new Connection({
      url: `${serverUrl.replace(/^http/, 'ws')}/api/v1/ws`,
      Socket: readSocket(options),
      credentials,
      requests: this.#link.requests,
      backoff: new Backoff(options.backoff),
      listener: {
        onState: () => this.#stateChanged(),
        onWelcome: (recovered) => this.#connected(recovered),
        onEvent: (event) => this.#receive(event),
        onRoomFrame: (frame) => this.#rooms.get(frame.roomId)?.receiveFrame(frame),
      },
    });
    if (options.lazy !== true) this.#connection.open();
  }

  /** The files of the environment. */
  get files(): CollabFiles {
    return this.#files;
  }

  /** The inbox of the user. */
  get inbox(): CollabInbox {
    return this.#inbox;
  }

  /** The state of the connection; the same object until it changes. */
  getSnapshot(): SessionState {
    return this.#connection.state;
  }

  /** Calls `listener` after each change of the state. */
  subscribe(listener: () => void): Unsubscribe {
    return this.#observers.subscribe(listener);
  }

  /** The room with this id, always the same object. Nothing is loaded until it has a subscriber. */
  room(roomId: string): CollabRoom {
    let room = this.#rooms.get(roomId);
    if (!room) {
      room = new LiveRoom(roomId, {
        ...this.#link,
        users: this.#users,
        writer: () => ({ userId: this.#connection.state.userId ?? '', attachments: (ids) => this.#files.known(ids) }),
      });
      this.#rooms.set(roomId, room);
    }
    return room;
  }

  /** Calls `listener` for each event of the environment that the token may see, in order, each once. */
  on(type: 'event', listener: (event: StreamEvent) => void): Unsubscribe {
    return this.#events.on(type, listener);
  }

  /** Users by id, at most 100 at a time; unknown ones are absent. Waits for the connection. */
  users(ids: readonly string[]): Promise<Readonly<Record<string, UserSummary>>> {
    return this.#find({ ids });
  }

  /**
   * Up to `limit` (1 to 100, 10 by default) users whose name or id begins with the text, for a mention picker. A token
   * that is confined to rooms must name one of them: it finds the users of that room. Waits as `users` does.
   */
  async searchUsers(
    text: string,
    options: { readonly limit?: number | undefined; readonly roomId?: string | undefined } = {},
  ): Promise<readonly UserSummary[]> {
    const { limit = 10, roomId } = options;
    return Object.values(await this.#find({ q: text, limit, roomId }));
  }

  /**
   * Requests a path of the API (docs/api.md) that browsers may use, such as `/rooms/board/p2p/state`, with the
   * credentials of the session. Resolves with a response of 2xx; rejects with a `CollabError` for any other.
   * `init.headers` must be a plain object.
   */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return this.#request(path, init);
  }

  /**
   * Tries to connect now instead of at `retryAt`, e.g. for a button; a closed session connects again. If a token is
   * being waited for, asks for another one.
   */
  reconnect(): void {
    this.#connection.reconnect();
  }

  /**
   * Ends the session until `reconnect`: closes the connection, rejects waiting writes with `closed`, and frees all
   * object URLs.
   */
  close(): void {
    this.#connection.close();
    this.#files.close();
  }

  #find(which: object): Promise<Readonly<Record<string, UserSummary>>> {
    this.#link.wake();
    return this.#users.find(which, true);
  }

  #stateChanged(): void {
    for (const part of [this.#inbox, ...this.#rooms.values()]) this.#link.notifyEnd(part);
    this.#observers.changed();
  }

  #connected(recovered: boolean): void {
    this.#users.reset(!recovered);
    for (const room of this.#rooms.values()) room.connected(recovered);
    this.#inbox.connected();
  }

  #receive(event: StreamEvent): void {
    if (event.type === 'user.updated') this.#users.update([event.data]);
    else if (event.roomId !== undefined) this.#rooms.get(event.roomId)?.receive(event);
    this.#inbox.receive(event);
    this.#events.emit('event', event);
  }
}

const invalid = (message: string): CollabError => new CollabError('invalid_request', message);

function readServerUrl(given: string | undefined): string {
  const address = given ?? platform.location?.origin;
  if (address === undefined)
    throw invalid('serverUrl is missing: give the address of the Collab server, such as https://comments.example.com');
  if (!/^https?:\/\/[^/]/.test(address)) throw invalid('serverUrl must begin with https:// or http://');
  return address.replace(/[?#].*$/, '').replace(/\/+$/, '');
}

function readKey(key: string): string {
  if (/^sk_\w/.test(key))
    throw invalid(
      'publishableKey is a secret key (sk_…). Never put it into a page: revoke it, and use the key that begins with pk_',
    );
  if (!/^pk_\w+$/.test(key)) throw invalid('publishableKey must be a key that begins with pk_');
  return key;
}

function readProvider(token: SessionOptions['token']): SessionOptions['token'] {
  if (typeof token !== 'function') throw invalid('token must be a function that returns the token of the user');
  return token;
}

function readSocket({ WebSocket: given }: SessionOptions): NonNullable<SessionOptions['WebSocket']> {
  const Socket = given ?? platform.WebSocket;
  if (Socket === undefined)
    throw invalid('This platform has no WebSocket. Pass one, such as that of ws: new CollabSession({ WebSocket })');
  return Socket;
}
