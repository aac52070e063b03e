import type { OwnMembership } from '../../domain/rooms/membership.ts';
import type { Connection } from '../session/connection.ts';

/** A connection of this worker in a room. */
export interface Member {
  readonly connection: Connection;
  /** The membership as it is in shared memory, or will be once the write that has begun ends. */
  membership: OwnMembership;
  /** Whether a write of the membership to shared memory has begun. */
  written: boolean;
  /** Time at which its activity was last written, by `Clock.monotonic`. */
  touchedAt: number;
  /** Whether its snapshot was sent; from then on it receives the frames of the room. */
  subscribed: boolean;
}
