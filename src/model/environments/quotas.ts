import * as Type from 'typebox';
import type { Static } from 'typebox';

/**
 * Bounds on what an environment and its users may store, and a user may write. Null is no bound. A megabyte is 1 048
 * 576 bytes.
 */
export interface Quotas {
  /** Existing comments in the environment. */
  readonly comments: number | null;
  /** Existing uploads in the environment. */
  readonly uploadMb: number | null;
  /** Shared states of all rooms in the environment. */
  readonly stateMb: number | null;
  /** Existing comments of one user. */
  readonly userComments: number | null;
  /** Existing uploads of one user. */
  readonly userUploadMb: number | null;
  /** Shared states of which one user is the last writer. */
  readonly userStateMb: number | null;
  /** Writes of one user from browsers per minute, over all workers. */
  readonly userWritesPerMinute: number | null;
}

/** The quotas of an environment without overrides. */
export const defaultQuotas: Quotas = {
  comments: 10_000_000,
  uploadMb: 102_400,
  stateMb: 10_240,
  userComments: 100_000,
  userUploadMb: 10_240,
  userStateMb: 1_024,
  userWritesPerMinute: 600,
};

/** The maximum value of a quota. */
export const MAX_QUOTA = 1_000_000_000;

const quota = () => Type.Optional(Type.Union([Type.Integer({ minimum: 1, maximum: MAX_QUOTA }), Type.Null()]));

/** The quotas that an operator can change; null removes a bound. */
export const QuotasPatchSchema = Type.Object({
  comments: quota(),
  uploadMb: quota(),
  stateMb: quota(),
  userComments: quota(),
  userUploadMb: quota(),
  userStateMb: quota(),
  userWritesPerMinute: quota(),
});
export type QuotasPatch = Static<typeof QuotasPatchSchema>;
