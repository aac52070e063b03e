/** The types of events: the same over WebSocket, in the stream and in webhooks. */
export const eventTypes = [
  'thread.created',
  'thread.updated',
  'thread.resolved',
  'thread.reopened',
  'thread.deleted',
  'comment.created',
  'comment.updated',
  'comment.deleted',
  'reaction.created',
  'reaction.deleted',
  'user.updated',
  'p2p.state.updated',
  'p2p.state.cleared',
] as const;
/** A type of event. */
export type EventType = (typeof eventTypes)[number];

/** The interface that a change came in by. */
export type Via = 'rest' | 'ws' | 'cli';

/** An event before it has a position. */
export interface EventDraft {
  readonly type: EventType;
  readonly eventId: string;
  /** ISO 8601 time of the change. */
  readonly at: string;
  readonly roomId: string | null;
  readonly threadId: string | null;
  readonly actor: { readonly userId: string | null; readonly via: Via };
  /** JSON text of `data`. */
  readonly data: string;
}

/** An event as every socket, reader of the stream and webhook receives it. */
export interface EventEnvelope {
  readonly type: EventType;
  readonly seq: number;
  readonly eventId: string;
  readonly at: string;
  readonly roomId?: string;
  readonly threadId?: string;
  readonly actor: { readonly userId: string | null; readonly via: Via };
  readonly data: unknown;
}

/** The JSON text of an event at a position. `data` is inserted as text, so that it is serialised only once. */
export function renderEvent(draft: EventDraft, seq: number): string {
  const room = draft.roomId === null ? '' : `,"roomId":${JSON.stringify(draft.roomId)}`;
  const thread = draft.threadId === null ? '' : `,"threadId":"${draft.threadId}"`;
  return `{"type":"${draft.type}","seq":${seq},"eventId":"${draft.eventId}","at":"${draft.at}"${room}${thread},"actor":${JSON.stringify(draft.actor)},"data":${draft.data}}`;
}

/**
 * The room of a rendered event; null for an event without a room. Reads only the part before `actor`, which `renderEvent`
 * writes: text from clients comes after it.
 */
export function roomOfEvent(text: string): string | null {
  const head = text.slice(0, text.indexOf(',"actor":'));
  const at = head.indexOf(',"roomId":');
  if (at < 0) return null;
  const parsed = JSON.parse(`${head}}`) as { roomId: string };
  return parsed.roomId;
}
