import type { Comment } from '../../model/comment.ts';
import type { EventEnvelope } from '../../model/event.ts';
import type { Thread } from '../../model/thread.ts';

/** The answer of `/demo/session`: what it takes to connect as one of the demo's users. */
export interface Session {
  readonly publishableKey: string;
  readonly token: string;
  readonly userId: string;
  readonly users: readonly { readonly userId: string; readonly name: string }[];
  readonly roomId: string;
}

/** A thread of the answer to `room.get`. */
export type ListedThread = Thread & { readonly comments: readonly Comment[] };

/** Data of the first frame of a connection. */
export interface Welcome {
  readonly epoch: string;
  readonly seq: number;
  readonly recovered: boolean;
  readonly heartbeatMs: number;
}

/** A durable event: it has a position and a type with a dot in it. */
export type ServerEvent = EventEnvelope;

/** Everything that the server sends over the WebSocket and this page understands. */
export type Frame =
  | { readonly type: 'welcome'; readonly data: Welcome }
  | { readonly type: 'ok'; readonly id: number; readonly data: unknown }
  | { readonly type: 'error'; readonly id?: number; readonly error: { readonly code: string; readonly message: string } }
  | { readonly type: 'seq'; readonly seq: number }
  | { readonly type: 'ping' }
  | { readonly type: 'token.expiring' }
  | ServerEvent;
