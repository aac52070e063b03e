import type { Clock } from '../../lib/clock.ts';
import type { PresenceState } from '../../model/presence.ts';
import type { SharedRecord } from '../../ports/shared.ts';
import { jsonOrUndefined } from '../input/json.ts';
import { isRecord } from '../input/validate.ts';

/** A connection of this process in a room, as the process knows it. */
export interface OwnMembership {
  readonly userId: string;
  readonly connectionId: string;
  /** When the user joined, with this connection or an earlier one, in milliseconds since the epoch; shown to clients. */
  readonly joinedAt: number;
  /** Shown to clients, too. */
  readonly activeAt: number;
  readonly state: PresenceState;
  /** When the state was set, by `Clock.monotonic`; null for never. */
  readonly stateSetAt: number | null;
}

/** One connection in one room, of any process, as read from shared memory. */
export interface Membership extends Omit<OwnMembership, 'stateSetAt'> {
  /** When the state was set, by the time of the memory; -Infinity for never. */
  readonly stateAt: number;
  /**
   * When the grace period of a lost connection ends at the earliest, by `Clock.monotonic`: the memory knows when it has
   * ended. Null while the connection is open.
   */
  readonly leavesAt: number | null;
}

/**
 * The text of a membership in shared memory. It has no time that another process would have to compare with its own
 * clock: how old the state was when the record was put, and the memory knows when that was.
 */
interface StoredMembership extends Omit<OwnMembership, 'stateSetAt'> {
  readonly stateAgeMs: number | null;
}

/** What a date may be away from the epoch, in milliseconds. */
const MAX_DATE_MS = 8.64e15;

/** What the texts of all memberships of a user begin with, so that they are found without parsing all records. */
export const membershipPrefix = (userId: string): string => `{"userId":${JSON.stringify(userId)},`;

/** The text of a membership, of which `readMembership` is the inverse. */
export function membershipText(clock: Pick<Clock, 'monotonic'>, membership: OwnMembership): string {
  const { userId, connectionId, joinedAt, activeAt, state, stateSetAt } = membership;
  const stateAgeMs = stateSetAt === null ? null : clock.monotonic() - stateSetAt;
  const stored: StoredMembership = { userId, connectionId, joinedAt, activeAt, state, stateAgeMs };
  return JSON.stringify(stored);
}

/**
 * The membership in a record. Undefined for what another version of Collab, or somebody else, has written in another
 * form: it must not keep the others in the room from being shown.
 *
 * @param askedAt `Clock.monotonic`, before the record was read
 */
export function readMembership(record: SharedRecord, askedAt: number): Membership | undefined {
  const { name, text, putAt, expiresInMs } = record;
  const stored = jsonOrUndefined(text);
  if (!isStored(stored) || stored.connectionId !== name) return undefined;
  const { userId, connectionId, joinedAt, activeAt, state, stateAgeMs } = stored;
  return {
    userId,
    connectionId,
    joinedAt,
    activeAt,
    state,
    stateAt: stateAgeMs === null ? Number.NEGATIVE_INFINITY : putAt - stateAgeMs,
    leavesAt: expiresInMs === null ? null : askedAt + expiresInMs,
  };
}

/** `readMembership` of each record that is one. */
export function readMemberships(records: readonly SharedRecord[], askedAt: number): Membership[] {
  return records.flatMap((record) => readMembership(record, askedAt) ?? []);
}

function isStored(value: unknown): value is StoredMembership {
  if (!isRecord(value)) return false;
  const { userId, connectionId, joinedAt, activeAt, state, stateAgeMs } = value;
  return (
    typeof userId === 'string' &&
    typeof connectionId === 'string' &&
    isDate(joinedAt) &&
    isDate(activeAt) &&
    isRecord(state) &&
    (stateAgeMs === null || Number.isFinite(stateAgeMs))
  );
}

function isDate(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= MAX_DATE_MS;
}
