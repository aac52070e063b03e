import type { Membership } from '../../domain/rooms/presence.ts';
import type { Connection } from '../session/connection.ts';

/** A connection of this worker in a room. */
export interface Member {
  readonly connection: Connection;
  /** As last written to shared memory, or to be written. */
  membership: Membership;
  /** Whether it was written to shared memory. */
  written: boolean;
  /** Time at which its activity was last written, by `Clock.monotonic`. */
  touchedAt: number;
  /** Whether its snapshot was sent; from then on it receives the frames of the room. */
  subscribed: boolean;
}
