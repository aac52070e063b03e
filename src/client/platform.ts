// The common part of browsers, Node, Bun and Deno, as far as the SDK uses it. The types are minimal, so that they fit
// the declarations of each platform.

/** A WebSocket as browsers, Node 22 and the package `ws` implement it. */
export interface Socket {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
}

/** The constructor of a WebSocket. */
export type SocketConstructor = new (url: string, protocols: string[]) => Socket;

/** A `BroadcastChannel`. */
export interface Channel {
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
}

/** The part of `navigator.locks` that the SDK uses. A lock is held until the promise of `held` is settled. */
export interface Locks {
  request(name: string, options: { readonly signal?: AbortSignal }, held: () => void | Promise<void>): Promise<unknown>;
}

/** Calls the returned function to stop listening. */
export type Unsubscribe = () => void;

/** An upload in a browser, which reports its progress. */
export interface UploadRequest {
  readonly upload: { onprogress: ((event: { readonly loaded: number; readonly total: number }) => void) | null };
  readonly status: number;
  readonly responseText: string;
  onload: (() => void) | null;
  onerror: ((event: unknown) => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(body: FormData): void;
  abort(): void;
}

/** Interfaces that a platform may have besides the language itself. */
export interface Globals {
  readonly WebSocket?: SocketConstructor;
  readonly BroadcastChannel?: new (name: string) => Channel;
  readonly XMLHttpRequest?: new () => UploadRequest;
  readonly location?: { readonly origin: string };
  readonly navigator?: { readonly onLine?: boolean; readonly locks?: Locks };
  readonly document?: { readonly visibilityState: string };
  readonly addEventListener?: (type: string, listener: () => void, capture?: boolean) => void;
  readonly removeEventListener?: (type: string, listener: () => void, capture?: boolean) => void;
}

/** The platform that the SDK runs on. Read it when it is used, because tests and polyfills replace parts of it. */
export const platform = globalThis as unknown as Globals;

/** Calls `listener` when the platform reports that the network has come or gone, or that the page became visible. */
export function onNetworkChange(listener: () => void): Unsubscribe {
  return onPageEvents(platform, ['online', 'offline', 'visibilitychange'], listener);
}

/** Calls `listener` on events of these types, at the window or the document. */
export function onPageEvents(page: Globals, types: readonly string[], listener: () => void): Unsubscribe {
  for (const type of types) page.addEventListener?.(type, listener, true);
  return () => {
    for (const type of types) page.removeEventListener?.(type, listener, true);
  };
}

/** Whether the platform reports that it has no network. */
export const isOffline = (): boolean => platform.navigator?.onLine === false;

/** Whether the page is in the background. */
export const isHidden = (): boolean => platform.document?.visibilityState === 'hidden';

/** Opens a WebSocket of the page. Throws if the platform has none, or refuses the address. */
export function newSocket(page: Globals, url: string, protocols: string[]): Socket {
  if (page.WebSocket === undefined) throw new Error('This platform has no WebSocket.');
  return new page.WebSocket(url, protocols);
}
