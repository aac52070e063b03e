/** The durable kinds: one vocabulary for WebSocket, log, webhooks and hooks (decisions R6, §3). */
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
export type EventType = (typeof eventTypes)[number];

export type Via = 'rest' | 'ws' | 'cli';

/** What the parts of an event are before it has a position. */
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

/** The envelope as every socket, log reader and webhook receives it. */
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

/** The JSON text of an event at a position. `data` goes in as the text it is, so it is serialised once. */
export function renderEvent(draft: EventDraft, seq: number): string {
  const room = draft.roomId === null ? '' : `,"roomId":${JSON.stringify(draft.roomId)}`;
  const thread = draft.threadId === null ? '' : `,"threadId":"${draft.threadId}"`;
  return `{"type":"${draft.type}","seq":${seq},"eventId":"${draft.eventId}","at":"${draft.at}"${room}${thread},"actor":${JSON.stringify(draft.actor)},"data":${draft.data}}`;
}

/**
 * The room of a rendered event, or null for an event that belongs to none.
 * Reads only the head, which `renderEvent` writes and no caller can: data comes after it.
 */
export function roomOfEvent(text: string): string | null {
  const head = text.slice(0, text.indexOf(',"actor":'));
  const at = head.indexOf(',"roomId":');
  if (at < 0) return null;
  const parsed = JSON.parse(`${head}}`) as { roomId: string };
  return parsed.roomId;
}
