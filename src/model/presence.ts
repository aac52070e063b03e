/** The public view of a user in a room: one per user, however many connections they have. */
export interface Presence {
  readonly userId: string;
  readonly name: string | null;
  readonly avatarUrl: string | null;
  /** Open connections; 1 during the grace period after the last one was lost. */
  readonly connections: number;
  readonly joinedAt: string;
  readonly lastActiveAt: string;
  /** The state of the connection that set one last. */
  readonly state: PresenceState;
}

/** Custom data that clients in a room share with each other. */
export type PresenceState = Readonly<Record<string, unknown>>;
