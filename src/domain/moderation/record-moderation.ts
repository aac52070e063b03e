import type { Transaction } from '../../ports/store.ts';
import type { Actor } from '../access/actor.ts';
import { type AuditEntry, auditActorOf, appendAuditRecord } from '../audit/audit.ts';
import type { Context } from '../context.ts';

/**
 * Records a change of the content of `authorId` in the audit log, if the actor makes it as a moderator: a user who is
 * not the author, a key of the scope `moderate`, or the operator on the command line. What backends do with a `full`
 * key is part of the application.
 */
export async function recordModeration(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  authorId: string,
  entry: AuditEntry,
): Promise<void> {
  const moderates =
    actor.kind === 'user' ? actor.userId !== authorId : actor.scope === 'moderate' || ctx.operator !== undefined;
  if (moderates) await appendAuditRecord(ctx, tx, actor.environment.id, { ...entry, actor: auditActorOf(ctx, actor) });
}
