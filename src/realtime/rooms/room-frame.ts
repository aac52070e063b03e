import { timestamp } from '../../lib/clock.ts';
import type { Member } from './member.ts';

/** A frame about a room. */
export interface RoomFrameFields {
  readonly type: string;
  readonly roomId: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The member whose user is the actor; absent for frames of the server. */
  readonly from?: Member;
  /** JSON text. */
  readonly data: string;
}

/** Renders a frame as JSON text. The last property is `data`. */
export function renderRoomFrame({ type, roomId, at, from, data }: RoomFrameFields): string {
  const actor =
    from === undefined
      ? ''
      : `,"actor":${JSON.stringify({ userId: from.connection.userId, via: 'ws', connectionId: from.connection.id })}`;
  return `{"type":"${type}","at":"${timestamp(at)}","roomId":${JSON.stringify(roomId)}${actor},"data":${data}}`;
}
