/** A client that missed more events than this reloads instead of resuming. */
export const MAX_RESUME_GAP = 1_000;

/** The position at which a client was last connected. */
export interface ResumePoint {
  readonly epoch: string;
  readonly seq: number;
}

/** Returns the resume point that a client sent, or null if the values are unusable; the client then reloads. */
export function resumePoint(epoch: unknown, seq: unknown): ResumePoint | null {
  if (typeof epoch !== 'string' || epoch === '') return null;
  return Number.isSafeInteger(seq) && (seq as number) >= 0 ? { epoch, seq: seq as number } : null;
}
