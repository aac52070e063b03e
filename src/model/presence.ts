/** A user in a room as it leaves the server: one, however many tabs are open. */
export interface Presence {
  readonly userId: string;
  readonly name: string | null;
  readonly avatarUrl: string | null;
  /** Tabs that are in the room; 1 during the grace after the last has gone. */
  readonly connections: number;
  readonly joinedAt: string;
  readonly lastActiveAt: string;
  /** What the tab that set one last says of itself. */
  readonly state: PresenceState;
}

/** Whatever clients want to know of each other in a room. */
export type PresenceState = Readonly<Record<string, unknown>>;
