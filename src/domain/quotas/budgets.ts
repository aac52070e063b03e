import { hash } from 'node:crypto';
import { CollabError } from '../../model/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { RateLimitResult, Shared } from '../../ports/shared.ts';
import { actorKey } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';

/** The part of the context that budgets need. */
export interface BudgetContext {
  readonly shared: Shared;
  readonly clock: Clock;
}

/** An amount per minute that each user, and each secret key, may spend over all workers of all machines. */
export interface ActorBudget {
  /** The name of the budget in shared memory. */
  readonly name: string;
  /** The amount per minute; 0 for no bound. */
  readonly perMinute: number;
  /** The first sentence of the error message, without a full stop: `Merging took more than 10s of a minute`. */
  readonly exceededMessage: string;
}

const WINDOW_MS = 60_000;

/**
 * Spends an amount of the actor's budget. Throws `rate_limited` if less is left. An amount of 0 is refused only if the
 * budget was overdrawn.
 */
export async function spendBudget(
  ctx: BudgetContext,
  actor: Actor,
  budget: ActorBudget,
  amount: number,
): Promise<void> {
  if (budget.perMinute === 0) return;
  const { allowed, resetMs } = await spend(ctx, actor, budget, amount, false);
  if (allowed) return;
  const seconds = Math.max(1, Math.ceil(resetMs / 1_000));
  throw new CollabError('rate_limited', `${budget.exceededMessage}. Try again in ${seconds}s`, seconds);
}

/** Deducts an amount that the actor has used already, even if it overdraws the budget. */
export async function chargeBudget(
  ctx: BudgetContext,
  actor: Actor,
  budget: ActorBudget,
  amount: number,
): Promise<void> {
  if (budget.perMinute > 0) await spend(ctx, actor, budget, amount, true);
}

function spend(
  { shared }: BudgetContext,
  actor: Actor,
  { name, perMinute }: ActorBudget,
  amount: number,
  overdraw: boolean,
): Promise<RateLimitResult> {
  // Hashed, since an id may contain any characters and be longer than a key.
  const key = `${name}/${hash('sha256', actorKey(actor), 'base64url').slice(0, 22)}`;
  return shared.spend(key, { amount, limit: perMinute, windowMs: WINDOW_MS, overdraw });
}
