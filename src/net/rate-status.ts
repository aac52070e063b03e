import { CollabError } from '../model/errors.ts';
import type { Header } from './response-headers.ts';

/** A rate window, after a request was counted in it. */
export interface RateStatus {
  /** The name of the window in `RateLimit-Policy`. */
  readonly policy: string;
  /** Requests per minute; 0 when nothing is limited. */
  readonly limit: number;
  /** Requests left in the window. */
  readonly remaining: number;
  /** Milliseconds until the window allows more requests. */
  readonly resetMs: number;
}

/** The headers that state the policy of a window and what is left of it; none for a window without a limit. */
export function rateHeaders(window: RateStatus): Header[] {
  if (window.limit === 0) return [];
  return [
    ['RateLimit-Policy', `"${window.policy}";q=${window.limit};w=60`],
    ['RateLimit', `"${window.policy}";r=${window.remaining};t=${resetSeconds(window)}`],
  ];
}

/** The refusal of a request that exceeds its window. */
export function rateLimited(window: RateStatus): CollabError {
  const seconds = resetSeconds(window);
  return new CollabError('rate_limited', `Rate limit exceeded. Try again in ${seconds}s`, seconds);
}

/** Whole seconds until the window allows more requests, at least 1. */
function resetSeconds({ resetMs }: RateStatus): number {
  return Math.max(1, Math.ceil(resetMs / 1000));
}
