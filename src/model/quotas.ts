import Type, { type Static } from 'typebox';

/** How much may be stored in an environment, and written by one user. Null: no bound. Megabytes are of 1 048 576 bytes. */
export interface Quotas {
  /** Comments that exist in the environment. */
  readonly comments: number | null;
  /** Uploaded files that exist in the environment. */
  readonly uploadMb: number | null;
  /** Shared states of all rooms of the environment. */
  readonly stateMb: number | null;
  /** Comments that exist of one user. */
  readonly userComments: number | null;
  /** Files that exist of those that one user uploaded. */
  readonly userUploadMb: number | null;
  /** Shared states that one user wrote last. */
  readonly userStateMb: number | null;
  /** Writes of one user from browsers in a minute, over all workers. */
  readonly userWritesPerMinute: number | null;
}

export const defaultQuotas: Quotas = {
  comments: 10_000_000,
  uploadMb: 102_400,
  stateMb: 10_240,
  userComments: 100_000,
  userUploadMb: 10_240,
  userStateMb: 1_024,
  userWritesPerMinute: 600,
};

/** The highest bound that can be set. */
export const MAX_QUOTA = 1_000_000_000;

const quota = () => Type.Optional(Type.Union([Type.Integer({ minimum: 1, maximum: MAX_QUOTA }), Type.Null()]));

/** What an operator may change of the quotas; null lifts one. */
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
