import { MEGABYTE } from '../../lib/bytes.ts';
import { CollabError } from '../../model/errors.ts';
import type { Actor } from '../access/actor.ts';
import { type ActorBudget, type BudgetContext, chargeBudget, spendBudget } from './budgets.ts';

/** The part of the configuration that this needs. */
export interface ReadBudgetConfig {
  readonly ws: { readonly readMegabytesPerMinute: number };
}

/**
 * Runs a read of an actor and charges its length to what the actor may read per minute. A read that is refused because
 * it is too long is charged like the longest one, since most of it was read. Throws `rate_limited` if more than the
 * budget was read; reads that run at the same time may exceed it together.
 *
 * @param maxBytes the length of the longest read
 */
export async function chargedRead(
  ctx: BudgetContext,
  config: ReadBudgetConfig,
  actor: Actor,
  maxBytes: number,
  read: () => Promise<string>,
): Promise<string> {
  const budget = budgetOf(config);
  await spendBudget(ctx, actor, budget, 0);
  let bytes = 0;
  try {
    const text = await read();
    bytes = Buffer.byteLength(text);
    return text;
  } catch (error) {
    if (error instanceof CollabError && error.code === 'payload_too_large') bytes = maxBytes;
    throw error;
  } finally {
    await chargeBudget(ctx, actor, budget, bytes);
  }
}

function budgetOf({ ws: { readMegabytesPerMinute } }: ReadBudgetConfig): ActorBudget {
  return {
    name: 'read',
    perMinute: readMegabytesPerMinute * MEGABYTE,
    exceededMessage: `More than ${readMegabytesPerMinute} MB were read within a minute`,
  };
}
