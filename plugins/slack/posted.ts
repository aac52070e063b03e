import type { Kv } from '../../src/plugins/api.ts';

const PREFIX = 'posted/';
const DAY_MS = 86_400_000;

/**
 * Whether a comment was marked as posted. A comment notifies several users, and is posted once. Its notifications come
 * one after the other, because they are of one thread.
 *
 * @param notifiedAt ISO 8601 time that all its notifications share
 */
export async function isPosted(kv: Kv, commentId: string, notifiedAt: string): Promise<boolean> {
  return (await kv.get(keyOf(commentId, notifiedAt))) !== undefined;
}

/** Marks a comment as posted, and removes marks of more than two days ago. */
export async function markPosted(kv: Kv, commentId: string, notifiedAt: string): Promise<void> {
  await kv.put(keyOf(commentId, notifiedAt), true);
  const oldest = keyOf('', new Date(Date.parse(notifiedAt) - 2 * DAY_MS).toISOString());
  for (const { key } of await kv.list({ prefix: PREFIX })) if (key < oldest) await kv.delete(key);
}

function keyOf(commentId: string, notifiedAt: string): string {
  return `${PREFIX}${notifiedAt.slice(0, 10)}/${commentId}`;
}
