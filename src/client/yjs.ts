import { fromBase64, toBase64, toBase64Url } from './base64.ts';
import { Observable } from './emitter.ts';
import { asCollabError, type CollabError } from './errors.ts';
import type { Unsubscribe } from './platform.ts';
import type { CollabRoom } from './room/room.ts';
import type { CollabSession } from './session/session.ts';

// The entry of `collab/yjs`: a provider for documents of Yjs, without a dependency on it.

/** The part of a `Y.Doc` that the provider uses. */
export interface YjsDocument {
  on(name: 'update', listener: (update: Uint8Array, origin: unknown) => void): unknown;
  off(name: 'update', listener: (update: Uint8Array, origin: unknown) => void): unknown;
}

/**
 * The part of the module `yjs` that the provider uses. The application passes its own: two copies of Yjs on a page do
 * not work together.
 */
export interface Yjs<D extends YjsDocument> {
  applyUpdate(doc: D, update: Uint8Array, origin?: unknown): void;
  encodeStateAsUpdate(doc: D, vector?: Uint8Array): Uint8Array;
  encodeStateVector(doc: D): Uint8Array;
  mergeUpdates(updates: Uint8Array[]): Uint8Array;
}

/** Options of a provider. */
export interface YjsProviderOptions<D extends YjsDocument> {
  /** The module `yjs` of the application: `import * as Y from 'yjs'`. */
  readonly Y: Yjs<NoInfer<D>>;
  readonly doc: D;
  readonly session: CollabSession;
  /** The room whose shared state is the document. */
  readonly roomId: string;
}

/** How a document stands. */
export interface YjsState {
  /** Whether the document has what the server had when the connection was opened. */
  readonly synced: boolean;
  /** Whether the server has every change of this document. */
  readonly saved: boolean;
  /** Why the last attempt to load or to save failed; null if it succeeded. */
  readonly error: CollabError | null;
}

/** Changes are collected this long before they are sent to the others in the room, in milliseconds. */
const SEND_MS = 40;
/** The pause between two writes to the server. */
const SAVE_MS = 1_000;
/** The length of the state vector of a document without content. */
const EMPTY_VECTOR_BYTES = 1;
/**
 * How long to wait before saving another client's unsaved changes, whose author may be gone, in milliseconds; at random
 * up to twice as long.
 */
const ADOPT_MS = 10_000;
/** The pause after a failure. */
const RETRY_MS = 5_000;
/** The most bytes of an update that is broadcast: 8 KiB as JSON. What is larger arrives by the server. */
const MAX_BROADCAST_BYTES = 6_000;

/**
 * Keeps a Yjs document equal to that of the others in a room, and stores it in the shared state of the room.
 *
 * Changes are broadcast to the room, and merged into the stored state a second later. The event of that write makes
 * every client load what it lacks, so a lost broadcast delays a change, and loses none. After a reconnect both
 * directions are compared again. End it with `destroy`.
 */
export class YjsProvider<D extends YjsDocument> {
  readonly #options: YjsProviderOptions<D>;
  readonly #room: CollabRoom;
  readonly #observers = new Observable();
  readonly #ends: Unsubscribe[] = [];
  #state: YjsState = { synced: false, saved: true, error: null };
  #unsent: Uint8Array[] = [];
  #sendTimer: ReturnType<typeof setTimeout> | undefined;
  #saveTimer: ReturnType<typeof setTimeout> | undefined;
  #adoptTimer: ReturnType<typeof setTimeout> | undefined;
  #saveAt = Infinity;
  /** The state vector that the server has for certain; undefined while nothing is. */
  #stored: Uint8Array | undefined;
  /** The version of the last own write. */
  #version = 0;
  /** The number of own changes. */
  #changes = 0;
  /** The connections whose changes are here and perhaps not on the server. */
  readonly #unsaved = new Set<string>();
  #connectionId: string | null = null;
  /** Runs loads and saves one after the other. */
  #queue: Promise<unknown> = Promise.resolve();
  /** The versions of the stored state that are to be looked at; Infinity after a reconnect. */
  readonly #versions = new Set<number>();
  #ended = false;

  constructor(options: YjsProviderOptions<D>) {
    this.#options = options;
    const { doc, session, roomId } = options;
    this.#room = session.room(roomId);
    doc.on('update', this.#onUpdate);
    this.#ends.push(
      () => doc.off('update', this.#onUpdate),
      this.#room.subscribe(() => {}),
      this.#room.on('broadcast', ({ actor, data }) => this.#receive(actor.connectionId, data)),
      session.on('event', (event) => {
        if (event.roomId !== roomId) return;
        if (event.type === 'p2p.state.updated') this.#load(event.data.version);
        else if (event.type === 'p2p.state.cleared') this.#stored = undefined;
      }),
      session.subscribe(() => this.#connected()),
    );
    // The server may not have the document's initial content.
    if (options.Y.encodeStateVector(doc).length > EMPTY_VECTOR_BYTES) this.#changed();
    this.#connected();
  }

  /** The same object until it changes. */
  getSnapshot(): YjsState {
    return this.#state;
  }

  /** Calls `listener` after each change of the state. Fits `useSyncExternalStore`. */
  subscribe(listener: () => void): Unsubscribe {
    return this.#observers.subscribe(listener);
  }

  /** Resolves when everything that was changed until now is stored. Rejects if the server refuses it. */
  async save(): Promise<void> {
    clearTimeout(this.#saveTimer);
    this.#saveAt = Infinity;
    await this.#run(() => this.#put());
    if (this.#state.error !== null) throw this.#state.error;
  }

  /** Ends it, after a last attempt to save. The document stays as it is. */
  async destroy(): Promise<void> {
    this.#flush();
    for (const end of this.#ends.splice(0)) end();
    clearTimeout(this.#sendTimer);
    clearTimeout(this.#saveTimer);
    clearTimeout(this.#adoptTimer);
    if (!this.#state.saved) await this.#run(() => this.#put());
    this.#ended = true;
  }

  readonly #onUpdate = (update: Uint8Array, origin: unknown): void => {
    if (origin === this) return;
    this.#unsent.push(update);
    this.#sendTimer ??= setTimeout(() => this.#flush(), SEND_MS);
    this.#changed();
  };

  #changed(): void {
    this.#changes++;
    this.#set({ saved: false });
    this.#saveIn(SAVE_MS);
  }

  /** Sends what was changed to the others in the room. */
  #flush(): void {
    clearTimeout(this.#sendTimer);
    this.#sendTimer = undefined;
    if (this.#unsent.length === 0) return;
    const update = this.#options.Y.mergeUpdates(this.#unsent.splice(0));
    if (update.length <= MAX_BROADCAST_BYTES) this.#room.broadcast({ yjs: toBase64(update) });
  }

  #receive(from: string, data: unknown): void {
    const { yjs, yjsSaved } = (data ?? {}) as { readonly yjs?: unknown; readonly yjsSaved?: unknown };
    if (Array.isArray(yjsSaved)) for (const connectionId of yjsSaved) this.#unsaved.delete(String(connectionId));
    if (typeof yjs !== 'string') return;
    try {
      this.#apply(fromBase64(yjs));
    } catch {
      // Not an update of Yjs: another use of broadcasts, or another client's fault.
      return;
    }
    this.#unsaved.add(from);
    this.#adoptTimer ??= setTimeout(() => this.#adopt(), ADOPT_MS * (1 + Math.random()));
  }

  /** Saves the changes of clients that have not done so themselves. */
  #adopt(): void {
    this.#adoptTimer = undefined;
    if (this.#unsaved.size > 0) this.#changed();
  }

  #apply(update: Uint8Array): void {
    this.#options.Y.applyUpdate(this.#options.doc, update, this);
  }

  #connected(): void {
    const { status, connectionId } = this.#options.session.getSnapshot();
    if (status !== 'live' || connectionId === this.#connectionId) return;
    this.#connectionId = connectionId;
    this.#stored = undefined;
    this.#load();
  }

  /**
   * Loads what this document lacks, unless only the write of this provider has made the version. Calls at the same time
   * share one.
   */
  #load(version = Infinity): void {
    if (this.#ended) return;
    this.#versions.add(version);
    if (this.#versions.size > 1) return;
    void this.#run(
      async () => {
        this.#versions.delete(this.#version);
        if (this.#versions.size === 0) return;
        this.#versions.clear();
        const { Y, doc } = this.#options;
        const response = await this.#fetch('GET', `?sv=${toBase64Url(Y.encodeStateVector(doc))}`);
        if (response.status === 200) this.#apply(new Uint8Array(await response.arrayBuffer()));
        this.#set({ synced: true });
        if (!this.#state.saved) this.#saveIn(SAVE_MS);
      },
      () => this.#load(),
    );
  }

  #saveIn(ms: number): void {
    if (this.#ended || Date.now() + ms >= this.#saveAt) return;
    this.#saveAt = Date.now() + ms;
    clearTimeout(this.#saveTimer);
    this.#saveTimer = setTimeout(() => {
      this.#saveAt = Infinity;
      void this.#run(
        () => this.#put(),
        () => this.#saveIn(RETRY_MS),
      );
    }, ms);
  }

  /** Merges what the server lacks into the stored state, and tells the others. */
  async #put(): Promise<void> {
    const { Y, doc } = this.#options;
    const vector = Y.encodeStateVector(doc);
    const changes = this.#changes;
    const adopted = [...this.#unsaved];
    const response = await this.#fetch('PUT', '?merge=yjs', Y.encodeStateAsUpdate(doc, this.#stored));
    const { version, changed } = (await response.json()) as { version: number; changed?: boolean };
    // A save that adds nothing is answered with the version that another client has written. A server of an older
    // version does not tell them apart.
    if (changed) this.#version = version;
    this.#stored = vector;
    if (changes !== this.#changes) return;
    this.#set({ saved: true });
    for (const connectionId of adopted) this.#unsaved.delete(connectionId);
    this.#room.broadcast({ yjsSaved: [this.#connectionId, ...adopted] });
  }

  async #fetch(method: string, query: string, body?: Uint8Array): Promise<Response> {
    const { session, roomId } = this.#options;
    const type = 'application/octet-stream';
    const headers: Record<string, string> = body === undefined ? { Accept: type } : { 'Content-Type': type };
    return session.fetch(`/rooms/${encodeURIComponent(roomId)}/p2p/state${query}`, {
      method,
      headers,
      body: (body ?? null) as NonNullable<RequestInit['body']> | null,
    });
  }

  /**
   * Runs one thing after the other. A failure is noted; `again` is called after a while, unless it would fail again.
   */
  #run(work: () => Promise<void>, again?: () => void): Promise<void> {
    const running = this.#queue.then(async () => {
      try {
        await work();
        this.#set({ error: null });
      } catch (thrown) {
        const error = asCollabError(thrown, 'The shared document');
        this.#set({ error });
        if (again !== undefined && !this.#ended && isTransient(error))
          setTimeout(again, (error.retryAfter ?? 0) * 1_000 + RETRY_MS);
      }
    });
    this.#queue = running;
    return running;
  }

  #set(change: Partial<YjsState>): void {
    const next = { ...this.#state, ...change };
    if (next.synced === this.#state.synced && next.saved === this.#state.saved && next.error === this.#state.error)
      return;
    this.#state = next;
    this.#observers.changed();
  }
}

function isTransient({ code, status }: CollabError): boolean {
  return (
    code === 'network' || code === 'timeout' || code === 'rate_limited' || code === 'write_conflict' || status >= 500
  );
}
