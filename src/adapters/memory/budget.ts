import type { Budget, RateWindow } from '../../ports/shared.ts';

/** A budget after a call of `Shared.spend`: what the caller gets, and when it is full again, which is all that is kept of it. */
export interface SpentBudget {
  readonly window: RateWindow;
  readonly fullAt: number;
}

/**
 * As `Shared.spend`.
 *
 * @param fullAt when the budget is full again, as of the last call; undefined for one that was never used
 */
export function spendFrom(fullAt: number | undefined, { amount, limit, windowMs, now, overdraw = false }: Budget): SpentBudget {
  const owedMs = Math.max(0, (fullAt ?? now) - now);
  const nextMs = owedMs + (amount * windowMs) / limit;
  const allowed = owedMs === 0 || nextMs <= windowMs;
  const spentMs = allowed || overdraw ? nextMs : owedMs;
  const remaining = Math.max(0, ((windowMs - spentMs) * limit) / windowMs);
  // More than the limit is allowed once nothing is owed.
  const resetMs = allowed ? spentMs : Math.min(owedMs, nextMs - windowMs);
  return { window: { allowed, remaining, resetMs }, fullAt: now + spentMs };
}
