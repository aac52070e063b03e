import { type DetailedHTMLProps, type HTMLAttributes, useCallback, useSyncExternalStore } from 'react';
import type { PresenceRow } from '../model/frames.ts';
import type { InboxSnapshot } from './inbox/inbox.ts';
import type { CollabRoom } from './room/room.ts';
import type { RoomSnapshot, RoomThread } from './room/snapshot.ts';
import type { SessionState } from './session/options.ts';
import type { CollabSession } from './session/session.ts';
import type { CollabCommentsAttributes, CollabCommentsElement } from './widget.ts';

// The entry of `collab/react`: hooks over the observables of the SDK, for React 18 and later. A component is rendered
// again when the part that it uses has changed.

/** The attributes of `<collab-comments>` in JSX. */
export type CollabCommentsProps = CollabCommentsAttributes &
  DetailedHTMLProps<HTMLAttributes<CollabCommentsElement>, CollabCommentsElement>;

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'collab-comments': CollabCommentsProps;
    }
  }
}

/** A room and its contents. */
export interface UsedRoom {
  readonly room: CollabRoom;
  readonly snapshot: RoomSnapshot;
}

interface Source<T> {
  subscribe(listener: () => void): () => void;
  getSnapshot(): T;
}

function useSource<S, T>(source: Source<S>, select: (snapshot: S) => T): T {
  const subscribe = useCallback((listener: () => void) => source.subscribe(listener), [source]);
  const get = (): T => select(source.getSnapshot());
  return useSyncExternalStore(subscribe, get, get);
}

const whole = <T>(snapshot: T): T => snapshot;

/** The state of the connection. */
export function useCollabSession(session: CollabSession): SessionState {
  return useSource(session, whole);
}

/** A room, which is loaded while a component uses it, and its contents. */
export function useCollabRoom(session: CollabSession, roomId: string): UsedRoom {
  const room = session.room(roomId);
  return { room, snapshot: useSource(room, whole) };
}

/** The threads of a room, newest first. */
export function useThreads(session: CollabSession, roomId: string): readonly RoomThread[] {
  return useSource(session.room(roomId), ({ threads }) => threads);
}

/** The users in a room. */
export function usePresence(session: CollabSession, roomId: string): readonly PresenceRow[] {
  return useSource(session.room(roomId), ({ presence }) => presence);
}

/** The inbox of the user. */
export function useInbox(session: CollabSession): InboxSnapshot {
  return useSource(session.inbox, whole);
}
