import type { Budget, RateLimitResult } from '../../ports/shared.ts';

/**
 * A budget after a call of `Shared.spend`: the result, and the time at which the budget is full again, which is all
 * that is stored.
 */
export interface SpentBudget {
  readonly window: RateLimitResult;
  readonly fullAt: number;
}

/**
 * Implements `Shared.spend`.
 *
 * @param fullAt the stored time at which the budget is full again; undefined if it was never used
 * @param now the time of the memory
 */
export function spendFrom(
  fullAt: number | undefined,
  { amount, limit, windowMs, overdraw = false }: Budget,
  now: number,
): SpentBudget {
  const missingMs = Math.max(0, (fullAt ?? now) - now);
  const nextMs = missingMs + (amount * windowMs) / limit;
  const allowed = missingMs === 0 || nextMs <= windowMs;
  const spentMs = allowed || overdraw ? nextMs : missingMs;
  const remaining = Math.max(0, ((windowMs - spentMs) * limit) / windowMs);
  // An amount above the limit is allowed only when the budget is full.
  const resetMs = allowed ? spentMs : Math.min(missingMs, nextMs - windowMs);
  return { window: { allowed, remaining, resetMs }, fullAt: now + spentMs };
}
