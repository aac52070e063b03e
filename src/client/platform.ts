// What browsers, Node, Bun and Deno have in common, as far as the SDK uses it. The types are minimal, so that they fit the
// declarations of each platform.

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

/** Calls the returned function to stop listening. */
export type Unsubscribe = () => void;

/** An upload in a browser, which reports its progress. */
export interface UploadRequest {
  readonly upload: { onprogress: ((event: { readonly loaded: number; readonly total: number }) => void) | null };
  readonly status: number;
  readonly responseText: string;
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(body: FormData): void;
  abort(): void;
}

/** What a platform may have besides the language itself. */
interface Globals {
  readonly WebSocket?: SocketConstructor;
  readonly XMLHttpRequest?: new () => UploadRequest;
  readonly location?: { readonly origin: string };
  readonly navigator?: { readonly onLine?: boolean };
  readonly document?: { readonly visibilityState: string };
  readonly addEventListener?: (type: string, listener: () => void, capture?: boolean) => void;
  readonly removeEventListener?: (type: string, listener: () => void, capture?: boolean) => void;
}

/** The platform that the SDK runs on. Read it when it is used, because tests and polyfills replace parts of it. */
export const platform = globalThis as unknown as Globals;

/** Calls `listener` when the platform reports that the network has come or gone, or that the page became visible. */
export function onNetworkChange(listener: () => void): Unsubscribe {
  const types = ['online', 'offline', 'visibilitychange'];
  for (const type of types) platform.addEventListener?.(type, listener, true);
  return () => {
    for (const type of types) platform.removeEventListener?.(type, listener, true);
  };
}

/** Whether the platform reports that it has no network. */
export const isOffline = (): boolean => platform.navigator?.onLine === false;

/** Whether the page is in the background. */
export const isHidden = (): boolean => platform.document?.visibilityState === 'hidden';
