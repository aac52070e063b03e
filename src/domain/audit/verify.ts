import type { AuditHead } from '../../model/environments/audit.ts';
import type { Context } from '../context.ts';
import { auditOf } from '../records/partitions.ts';
import { scanEntries } from '../records/scan.ts';
import { readHead } from './audit.ts';
import { type AuditChain, ChainCheck } from './chain.ts';

/** The result of verifying a chain. */
export interface ChainVerdict {
  /** The last record that was found. */
  readonly head: AuditHead;
  /** The faults; empty if the chain is intact. */
  readonly faults: readonly string[];
}

/**
 * Verifies the stored chain of an environment or of the server, while it may grow.
 *
 * @param known heads that were noted earlier, e.g. in the manifest of a backup, which the chain must contain
 */
export async function verifyChain(
  ctx: Context,
  chain: AuditChain,
  known: readonly AuditHead[] = [],
): Promise<ChainVerdict> {
  for (;;) {
    const stored = await readHead(ctx.store, chain);
    const verdict = await verifyTexts(chain, textsOf(ctx, chain), stored, known);
    // Records that were added while the chain was read are not a fault: read it again.
    if (verdict.faults.length === 0 || (await readHead(ctx.store, chain)).seq === stored.seq) return verdict;
  }
}

/** Verifies the records of a chain, given as texts in order, against its head and heads that were noted earlier. */
export async function verifyTexts(
  chain: AuditChain,
  texts: AsyncIterable<string> | Iterable<string>,
  head: AuditHead,
  known: readonly AuditHead[],
): Promise<ChainVerdict> {
  const check = new ChainCheck(chain);
  const faults: string[] = [];
  for await (const text of texts) {
    faults.push(...check.add(text));
    for (const { seq, hash } of known)
      if (seq === check.head.seq && hash !== check.head.hash)
        faults.push(`record ${seq} does not have the hash that was noted earlier: the chain was rewritten`);
  }
  faults.push(...check.end(head));
  for (const { seq } of known)
    if (seq > check.head.seq)
      faults.push(`record ${seq}, whose hash was noted earlier, is missing: the chain was truncated`);
  return { head: check.head, faults };
}

async function* textsOf({ store }: Context, chain: AuditChain): AsyncIterable<string> {
  for await (const { value } of scanEntries(store, auditOf(chain))) yield value;
}
