import type { Json } from './json.ts';

/** A job of a queue of a plugin. */
export interface Job {
  /** Unique in the queue and environment; at most 128 characters of A–Z a–z 0–9 _ . : -. */
  readonly id: string;
  readonly payload: Json;
  /** Attempts so far. */
  readonly attempts: number;
  readonly state: 'waiting' | 'dead';
  readonly createdAt: string;
  /** When the next attempt is due; of a dead job, when it died. Times are ISO 8601. */
  readonly dueAt: string;
  /** Why the last attempt failed; null before that. */
  readonly lastError: string | null;
}

/** A job to add. `group` has the form of an id; jobs without one form a group. */
export type NewJob = Pick<Job, 'id' | 'payload'> & { readonly delayMs?: number; readonly group?: string };
