import * as Type from 'typebox';
import type { Static } from 'typebox';
import { type Metadata, MetadataSchema } from './metadata.ts';

/** The public view of a room. */
export interface Room {
  readonly id: string;
  readonly roomId: string;
  readonly threadCount: number;
  readonly openThreadCount: number;
  readonly metadata: Metadata;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly lastActivityAt: string;
}

/** A room that is read by its id. The times are null if nobody has used it yet. */
export type ReadRoom = Omit<Room, 'createdAt' | 'updatedAt' | 'lastActivityAt'> & {
  readonly [Time in 'createdAt' | 'updatedAt' | 'lastActivityAt']: string | null;
};

/** The view of a room that nobody has used yet. */
export function unusedRoom(roomId: string): ReadRoom {
  return {
    id: roomId,
    roomId,
    threadCount: 0,
    openThreadCount: 0,
    metadata: {},
    createdAt: null,
    updatedAt: null,
    lastActivityAt: null,
  };
}

/** A room as stored: the part that does not change with its threads. */
export interface RoomRecord {
  readonly roomId: string;
  readonly metadata: Metadata;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The part of a room that changes with its threads. */
export interface RoomStats {
  readonly threadCount: number;
  readonly openThreadCount: number;
  /** Time of the last change of any thread or comment in the room. */
  readonly lastActivityAt: string;
}

/** The public view of a room, made of its record and stats. `updatedAt` is the later of their times. */
export function presentRoom(record: RoomRecord, stats: RoomStats): Room {
  return {
    id: record.roomId,
    roomId: record.roomId,
    threadCount: stats.threadCount,
    openThreadCount: stats.openThreadCount,
    metadata: record.metadata,
    createdAt: record.createdAt,
    updatedAt: stats.lastActivityAt > record.updatedAt ? stats.lastActivityAt : record.updatedAt,
    lastActivityAt: stats.lastActivityAt,
  };
}

/** The fields of a room that a backend can change. */
export const RoomPatchSchema = Type.Object({ metadata: MetadataSchema });
export type RoomPatch = Static<typeof RoomPatchSchema>;

/** The rooms that a credential is confined to, as ids and `prefix*`; null for all rooms. */
export type RoomScope = readonly string[] | null;

/** Whether a room is in a scope. */
export function inScope(scope: RoomScope, roomId: string): boolean {
  if (scope === null) return true;
  return scope.some((rule) => (rule.endsWith('*') ? roomId.startsWith(rule.slice(0, -1)) : rule === roomId));
}
