import { setTimeout as delay } from 'node:timers/promises';
import type { OpenSnapshot, StoreOperations } from '../../ports/store-operations.ts';

/** A snapshot that is open for longer is reported. */
const LONG_MS = 1_000;
const POLL_MS = 50;

/**
 * Finds snapshots of the store that other processes keep open for a second or longer. Takes a second if any are open,
 * else no time.
 */
export async function findLongSnapshots(operations: StoreOperations | undefined): Promise<OpenSnapshot[]> {
  if (operations === undefined) return [];
  // Healthy processes have snapshots open too, but different ones at every check.
  let open = operations.openSnapshots();
  for (const startedAt = performance.now(); open.length > 0 && performance.now() - startedAt < LONG_MS;) {
    await delay(POLL_MS);
    const minMs = performance.now() - startedAt;
    open = operations.openSnapshots().filter(({ heldMs }) => heldMs >= minMs);
  }
  return open;
}

/** Describes a snapshot: `process 4711 (collab tail, stopped) keeps a snapshot of the log open`. */
export function describeSnapshot({
  table,
  pid,
  command,
  stopped,
}: Pick<OpenSnapshot, 'table' | 'pid' | 'command' | 'stopped'>): string {
  const about = [command, stopped ? 'stopped' : null].filter((part) => part !== null).join(', ');
  return `process ${pid}${about === '' ? '' : ` (${about})`} keeps a snapshot of the ${table} open`;
}
