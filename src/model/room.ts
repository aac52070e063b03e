import Type, { type Static } from 'typebox';
import { type Metadata, MetadataSchema } from './metadata.ts';

/** A room as it leaves the server. */
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

/** A room as stored: what does not change with its threads. */
export interface RoomRecord {
  readonly roomId: string;
  readonly metadata: Metadata;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** What changes with the threads of a room. */
export interface RoomStats {
  readonly threadCount: number;
  readonly openThreadCount: number;
  /** Time of the last change of any thread or comment in it. */
  readonly lastActivityAt: string;
}

/** The room that leaves the server of a record and its stats; `updatedAt` is the later of the two. */
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

/** What a backend may change of a room. */
export const RoomPatchSchema = Type.Object({ metadata: MetadataSchema });
export type RoomPatch = Static<typeof RoomPatchSchema>;

/** Which rooms a credential reaches: ids and `prefix*`; null means all. */
export type RoomScope = readonly string[] | null;

/** Whether a scope reaches a room. */
export function inScope(scope: RoomScope, roomId: string): boolean {
  if (scope === null) return true;
  return scope.some((rule) => (rule.endsWith('*') ? roomId.startsWith(rule.slice(0, -1)) : rule === roomId));
}
