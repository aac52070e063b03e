import type { Comment } from '../../model/comment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Thread } from '../../model/thread.ts';

/** The response of `/demo/session`: the credentials of one demo user, and what the page needs to know. */
export interface Session {
  readonly publishableKey: string;
  readonly token: string;
  readonly userId: string;
  readonly users: readonly { readonly userId: string; readonly name: string }[];
  readonly roomId: string;
}

/** A thread in the reply to `room.get` with `includeComments`. */
export type ListedThread = Thread & { readonly comments: readonly Comment[] };

/** Data of the `welcome` frame, the first of a connection. */
export interface Welcome {
  readonly epoch: string;
  readonly seq: number;
  readonly recovered: boolean;
  readonly heartbeatMs: number;
}

/** An event of the environment's stream: it has a position (`seq`) and a type with a dot in it. */
export type ServerEvent = EventEnvelope;

/** The WebSocket frames that this page handles. */
export type Frame =
  | { readonly type: 'welcome'; readonly data: Welcome }
  | { readonly type: 'ok'; readonly id: number; readonly data: unknown }
  | { readonly type: 'error'; readonly id?: number; readonly error: { readonly code: string; readonly message: string } }
  | { readonly type: 'seq'; readonly seq: number }
  | { readonly type: 'ping' }
  | { readonly type: 'token.expiring' }
  | ServerEvent;
