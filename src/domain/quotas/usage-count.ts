import type { StoredFile } from '../../model/attachment.ts';
import type { Comment } from '../../model/comment.ts';
import type { SharedStateRecord } from '../../model/shared-state.ts';
import type { Store, Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import {
  COMMENT_PREFIX,
  filesOf,
  STATE_RECORD_KEY,
  sharedStateOf,
  threadRecordsOf,
  usageOf,
} from '../records/partitions.ts';
import { readRecord, scanRecords } from '../records/record.ts';
import { scanPartitions } from '../records/scan.ts';
import { noUsage, parseUsage, renderUsage, TOTAL_KEY, type Usage, type UsageKind, userUsageKey } from './usage.ts';

/** Exists once everything was counted: stores of earlier versions have content without counts. */
export const COUNTED_KEY = 'counted';
/** Counts corrected in one transaction. */
const SLICE = 500;

/** Usage by key: `TOTAL_KEY` or a `userUsageKey`. */
export type Counts = Map<string, Usage>;

/** Marks the counts of an environment as complete. */
export function markCounted(tx: Transaction, environmentId: string): void {
  tx.put(usageOf(environmentId), COUNTED_KEY, '1');
}

/** Whether an environment was counted. */
export async function isCounted({ store }: Context, environmentId: string): Promise<boolean> {
  return (await store.get(usageOf(environmentId), COUNTED_KEY)) !== undefined;
}

/** Counts an environment unless it was counted before. Returns whether it counted. */
export async function ensureCounted(ctx: Context, environmentId: string): Promise<boolean> {
  if (await isCounted(ctx, environmentId)) return false;
  await recountUsage(ctx, environmentId);
  return true;
}

/**
 * Recounts what an environment and each of its users have stored, by reading all of it in slices. Concurrent writes are
 * counted too; a record that is written while its slice is read may count twice until the next recount.
 */
export async function recountUsage(ctx: Context, environmentId: string): Promise<void> {
  const { store } = ctx;
  const partition = usageOf(environmentId);
  const before = new Map(
    (await store.range(partition))
      .filter(({ key }) => key !== COUNTED_KEY)
      .map(({ key, value }) => [key, parseUsage(value)]),
  );
  const found = await countAll(store, environmentId);
  const keys = [...new Set([...before.keys(), ...found.keys()])];
  for (let from = 0; from === 0 || from < keys.length; from += SLICE) {
    await store.transact((tx) => {
      for (const key of keys.slice(from, from + SLICE)) {
        const difference = combine(found.get(key) ?? noUsage, before.get(key) ?? noUsage, -1);
        tx.update(partition, key, (current) => renderUsage(combine(parseUsage(current), difference, 1)));
      }
      markCounted(tx, environmentId);
      return Promise.resolve();
    });
  }
}

/** Counts everything that an environment and each of its users have stored, by reading all of it in slices. */
export async function countAll(store: Store, environmentId: string): Promise<Counts> {
  const counts: Counts = new Map();
  for await (const partition of scanPartitions(store, threadRecordsOf(environmentId, ''))) {
    for await (const { value } of scanRecords<Comment>(store, partition, COMMENT_PREFIX))
      add(counts, value.userId, 'comments', 1);
  }
  for await (const { value } of scanRecords<StoredFile>(store, filesOf(environmentId)))
    add(counts, value.uploadedBy, 'uploadBytes', value.attachment.sizeBytes);
  for await (const partition of scanPartitions(store, sharedStateOf(environmentId, ''))) {
    const state = await readRecord<SharedStateRecord>(store, partition, STATE_RECORD_KEY);
    if (state !== undefined) add(counts, state.updatedBy, 'stateBytes', state.sizeBytes);
  }
  return counts;
}

function add(counts: Counts, userId: string | null, kind: UsageKind, amount: number): void {
  for (const key of userId === null ? [TOTAL_KEY] : [TOTAL_KEY, userUsageKey(userId)]) {
    const usage = counts.get(key) ?? noUsage;
    counts.set(key, { ...usage, [kind]: usage[kind] + amount });
  }
}

function combine(a: Usage, b: Usage, sign: 1 | -1): Usage {
  return {
    comments: a.comments + sign * b.comments,
    uploadBytes: a.uploadBytes + sign * b.uploadBytes,
    stateBytes: a.stateBytes + sign * b.stateBytes,
  };
}
