import type { CollabErrorCode } from './errors.ts';
import type { SessionState, TokenProvider } from './session/options.ts';
import type { CollabSession } from './session/session.ts';

// The types of `collab/widget`. It has no code: the server hands out the script of the element.

/** The `detail` of each event of the element. */
export interface CollabCommentsEventDetails {
  'collab-ready': { readonly threads: number };
  'collab-status': Pick<SessionState, 'status' | 'reason'>;
  'collab-thread-open': { readonly threadId: string };
  'collab-thread-close': { readonly threadId: string };
  'collab-thread-create': { readonly threadId: string };
  'collab-comment-create': { readonly threadId: string; readonly commentId: string };
  /** Cancelable: a page that prevents the default leads to the thread by itself. */
  'collab-notification-open': { readonly roomId: string; readonly threadId: string; readonly commentId: string };
  'collab-error': { readonly code: CollabErrorCode; readonly message: string };
}

/** The events of the element, as `addEventListener` takes them. */
export type CollabCommentsEventMap = {
  [Name in keyof CollabCommentsEventDetails]: CustomEvent<CollabCommentsEventDetails[Name]>;
};

/** The element `<collab-comments>`; docs/widget.md describes its interface. */
export interface CollabCommentsElement extends HTMLElement {
  baseUrl: string;
  publishableKey: string;
  room: string;
  token: string;
  locale: string;
  theme: string;
  placement: string;
  cursors: boolean;
  shareConnection: boolean;
  /** Up to three keys, with white space between them; null for none. */
  shortcuts: string | null;
  /** Address of the page's service worker for push messages; empty for none. */
  pushWorker: string;
  /** Returns a token of the user; called for each connection, and before a token expires. */
  tokenProvider: TokenProvider | null;
  /** A session that the page has already, instead of key and token. */
  session: Pick<
    CollabSession,
    'getSnapshot' | 'subscribe' | 'room' | 'files' | 'inbox' | 'users' | 'searchUsers' | 'reconnect' | 'fetch'
  > | null;
  /** Texts that replace those of the widget. */
  strings: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  /**
   * Opens a thread, at a comment of it if one is named; once the room is loaded, if it is not yet. Does nothing if the
   * room has no such thread.
   */
  openThread(threadId: string, commentId?: string | null): void;
  /** Opens or closes the panel. */
  togglePanel(open?: boolean): void;
  /** Opens or closes the inbox. Does nothing where the server has none. */
  toggleInbox(open?: boolean): void;
  /** Lets the user choose a place for a new thread. */
  startComment(): void;
}

/**
 * The attributes of the element in JSX, and the properties, which React sets from version 19 on. React 18 writes
 * `false` as text, so an attribute without a value is `true` or absent.
 */
export interface CollabCommentsAttributes extends Partial<
  Pick<CollabCommentsElement, 'tokenProvider' | 'session' | 'strings'>
> {
  readonly 'base-url'?: string | undefined;
  readonly 'publishable-key'?: string | undefined;
  readonly room?: string | undefined;
  readonly token?: string | undefined;
  readonly locale?: string | undefined;
  readonly theme?: 'auto' | 'light' | 'dark' | undefined;
  readonly placement?: 'bottom-right' | 'bottom-left' | 'top-right' | 'top-left' | undefined;
  readonly cursors?: true | '' | undefined;
  readonly 'share-connection'?: true | '' | undefined;
  readonly shortcuts?: string | undefined;
  readonly 'push-worker'?: string | undefined;
}

declare global {
  interface HTMLElementTagNameMap {
    'collab-comments': CollabCommentsElement;
  }
  // They bubble, so that the document and every element around the widget get them, too.
  interface GlobalEventHandlersEventMap extends CollabCommentsEventMap {}
}
