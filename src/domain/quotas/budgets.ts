import { hash } from 'node:crypto';
import { CollabError } from '../../model/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { RateWindow, Shared } from '../../ports/shared.ts';
import { actorKey } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';

/** The part of the context that budgets need. */
export interface BudgetContext {
  readonly shared: Shared;
  readonly clock: Clock;
}

/** A budget that each user, and each secret key, has over all workers. */
export interface ActorBudget {
  /** Names the budget in shared memory. */
  readonly name: string;
  /** What may be spent in a minute; 0 for any amount. */
  readonly perMinute: number;
  /** What a refusal says, without its end: `Merging took more than 10s of a minute`. */
  readonly refusal: string;
}

const WINDOW_MS = 60_000;

/** Spends an amount of the actor's budget. Throws `rate_limited` when that has too little left. With 0 it throws only after more than all was used. */
export function spendBudget(ctx: BudgetContext, actor: Actor, budget: ActorBudget, amount: number): void {
  if (budget.perMinute === 0) return;
  const { allowed, resetMs } = spend(ctx, actor, budget, amount, false);
  if (allowed) return;
  const seconds = Math.max(1, Math.ceil(resetMs / 1_000));
  throw new CollabError('rate_limited', `${budget.refusal}. Try again in ${seconds}s`, seconds);
}

/** Counts what the actor has used already, even when it is more than the budget has left. */
export function chargeBudget(ctx: BudgetContext, actor: Actor, budget: ActorBudget, amount: number): void {
  if (budget.perMinute > 0) spend(ctx, actor, budget, amount, true);
}

function spend({ shared, clock }: BudgetContext, actor: Actor, { name, perMinute }: ActorBudget, amount: number, overdraw: boolean): RateWindow {
  // An id may be of any characters, and longer than a key.
  const key = `${name}/${hash('sha256', actorKey(actor), 'base64url').slice(0, 22)}`;
  return shared.spend(key, { amount, limit: perMinute, windowMs: WINDOW_MS, now: clock.monotonic(), overdraw });
}
