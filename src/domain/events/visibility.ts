import { isModerationEvent, receiverOfEvent, roomOfEvent } from '../../model/event.ts';
import { inScope, type RoomScope } from '../../model/room.ts';
import { isModerator } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';

/** Who reads events, with the rights that decide which ones. */
export interface EventViewer {
  /** Null for a backend. */
  readonly userId: string | null;
  /** Whether it may moderate. */
  readonly moderates: boolean;
  readonly rooms: RoomScope;
}

/**
 * What a viewer that is confined to rooms sees of the events without a room, which are about users. The log hides them
 * (`hidden`), as such a credential cannot list users either. Sockets show them (`shown`), so that a page updates the
 * names and pictures that it shows.
 */
export type RoomlessEvents = 'hidden' | 'shown';

/** The viewer that an actor is. */
export function viewerOf(actor: Actor): EventViewer {
  const { rooms } = actor;
  return { userId: actor.kind === 'user' ? actor.userId : null, moderates: isModerator(actor), rooms };
}

/**
 * Whether a viewer may see a rendered event. Events for one user are for that user alone, of the viewers that are
 * users; a backend sees them too. Events about moderation are for the author of the content and for who may moderate.
 */
export function isVisibleTo(
  { userId, moderates, rooms }: EventViewer,
  event: string,
  roomless: RoomlessEvents,
): boolean {
  const isModeration = isModerationEvent(event);
  if (!(isModeration && moderates)) {
    if (userId === null && isModeration) return false;
    const receiver = userId === null ? null : receiverOfEvent(event);
    if (receiver !== null && receiver !== userId) return false;
  }
  return rooms === null || isRoomVisible(rooms, roomOfEvent(event), roomless);
}

/** Whether a viewer that is confined to rooms sees the events of a room, or, for null, those without one. */
export function isRoomVisible(rooms: NonNullable<RoomScope>, roomId: string | null, roomless: RoomlessEvents): boolean {
  return roomId === null ? roomless === 'shown' : inScope(rooms, roomId);
}
