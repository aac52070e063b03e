import { timestamp } from '../../lib/clock.ts';
import type { AuditAction, AuditActor, AuditDetails, AuditHead, AuditTarget } from '../../model/environments/audit.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { AUDIT_HEAD_KEY, auditHeadOf, auditOf, auditKey } from '../records/partitions.ts';
import { addToChain, type AuditChain, parseHead } from './chain.ts';

/** An act to record, without what the chain adds. */
export interface AuditEntry {
  readonly action: AuditAction;
  readonly target: AuditTarget;
  readonly details?: AuditDetails;
  /**
   * Who did it; by default the operator of the context (an admin or the user of the CLI), or the server if there is
   * none.
   */
  readonly actor?: AuditActor;
}

/** The heads of the chains after what a transaction has added, which its reads do not see. */
const heads = new WeakMap<Transaction, Map<AuditChain, string>>();

/**
 * Adds a record of an act to a chain, in the transaction that does it. Two transactions that add to the same chain
 * conflict, and one of them runs again.
 */
export async function appendAuditRecord(
  ctx: Context,
  tx: Transaction,
  chain: AuditChain,
  { action, target, details = {}, actor }: AuditEntry,
): Promise<void> {
  const added = heads.get(tx) ?? new Map<AuditChain, string>();
  heads.set(tx, added);
  const stored = added.get(chain) ?? (await tx.get(auditHeadOf(chain), AUDIT_HEAD_KEY));
  const by = actor ?? ctx.operator ?? { kind: 'system', id: null };
  const { text, head } = addToChain(chain, stored, {
    at: timestamp(ctx.clock.now()),
    actor: by,
    action,
    target,
    details,
  });
  const headText = JSON.stringify(head);
  added.set(chain, headText);
  tx.put(auditOf(chain), auditKey(head.seq), text);
  tx.put(auditHeadOf(chain), AUDIT_HEAD_KEY, headText);
}

/** The actor of a request to an environment, as the audit log names it. */
export function auditActorOf({ operator }: Context, actor: Actor): AuditActor {
  if (operator !== undefined) return operator;
  return actor.kind === 'user' ? { kind: 'user', id: actor.userId } : { kind: 'key', id: actor.keyId };
}

/** The stored head of a chain. */
export async function readHead(reader: Pick<Reader, 'get'>, chain: AuditChain): Promise<AuditHead> {
  return parseHead(chain, await reader.get(auditHeadOf(chain), AUDIT_HEAD_KEY));
}

/** The texts of the records of a chain after `since`, in order, at most `limit`. */
export async function readRecords(
  { store }: Context,
  chain: AuditChain,
  since: number,
  limit: number,
): Promise<string[]> {
  const entries = await store.range(auditOf(chain), { after: auditKey(since), limit });
  return entries.map(({ value }) => value);
}

/**
 * A page of a chain: `{"items":[…],"seq":…,"hash":…}`, with `nextSince` if there are more records. `seq` and `hash` are
 * those of the head.
 */
export async function listRecords(ctx: Context, chain: AuditChain, since: number, limit: number): Promise<string> {
  const items = await readRecords(ctx, chain, since, limit);
  const head = await readHead(ctx.store, chain);
  const last = since + items.length;
  const next = items.length > 0 && last < head.seq ? `,"nextSince":${last}` : '';
  return `{"items":[${items.join(',')}],"seq":${head.seq},"hash":"${head.hash}"${next}}`;
}
