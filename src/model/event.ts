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
  'notification.created',
  'notification.read',
  'moderation.held',
  'moderation.reported',
  'moderation.approved',
  'moderation.rejected',
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
  /**
   * The only user who receives the event, besides backends, and moderators if it is about moderation; absent for an
   * event that everyone receives.
   */
  readonly userId?: string | undefined;
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
  /** Present if only this user, and backends, receive the event; those about moderation also reach moderators. */
  readonly userId?: string;
  readonly actor: { readonly userId: string | null; readonly via: Via };
  readonly data: unknown;
}

/** The JSON text of an event at a position. `data` is inserted as text, so that it is serialised only once. */
export function renderEvent(draft: EventDraft, seq: number): string {
  const room = draft.roomId === null ? '' : `,"roomId":${JSON.stringify(draft.roomId)}`;
  const thread = draft.threadId === null ? '' : `,"threadId":"${draft.threadId}"`;
  const user = draft.userId === undefined ? '' : `,"userId":${JSON.stringify(draft.userId)}`;
  const actor = `{"userId":${draft.actor.userId === null ? 'null' : JSON.stringify(draft.actor.userId)},"via":"${draft.actor.via}"}`;
  return `{"type":"${draft.type}","seq":${seq},"eventId":"${draft.eventId}","at":"${draft.at}"${room}${thread}${user},"actor":${actor},"data":${draft.data}}`;
}

const TYPE_START = '{"type":"'.length;

/** The type of a rendered event. */
export function typeOfEvent(text: string): string {
  return text.slice(TYPE_START, text.indexOf('"', TYPE_START));
}

/**
 * The room of a rendered event; null for an event without a room. Parses only the part before `actor`, which
 * `renderEvent` writes: text from clients comes after it.
 */
export function roomOfEvent(text: string): string | null {
  const head = text.slice(0, text.indexOf(',"actor":'));
  return head.includes(',"roomId":') ? (JSON.parse(`${head}}`) as { readonly roomId: string }).roomId : null;
}

/**
 * Whether a rendered event is about the moderation queue: besides its author, only who may moderate its room receives
 * it.
 */
export function isModerationEvent(text: string): boolean {
  return typeOfEvent(text).startsWith('moderation.');
}

/**
 * The id of the only user who receives a rendered event, besides moderators (`isModerationEvent`); null if every user
 * may receive it; undefined if only backends do: a notification that the inbox of its user does not show.
 */
export function receiverOfEvent(text: string): string | null | undefined {
  const isNotification = typeOfEvent(text).startsWith('notification.');
  if (!isNotification && !isModerationEvent(text)) return null;
  const { userId = null, data } = JSON.parse(text) as EventEnvelope;
  return isNotification && (data as { readonly inApp?: boolean }).inApp === false ? undefined : userId;
}
