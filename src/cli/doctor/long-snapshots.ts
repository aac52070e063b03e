import { setTimeout as delay } from 'node:timers/promises';
import type { OpenSnapshot, Store } from '../../ports/store.ts';

/** A snapshot that is still held after this is held for too long. */
const LONG_MS = 1_000;
const LOOK_AGAIN_MS = 50;

/** The snapshots of the store that other processes hold for a second and longer. Takes that second only when there may be some. */
export async function findHeldSnapshots(store: Store): Promise<OpenSnapshot[]> {
  // Processes that are well hold some too, other ones at every look.
  let held = store.openSnapshots();
  for (const begun = performance.now(); held.length > 0 && performance.now() - begun < LONG_MS; ) {
    await delay(LOOK_AGAIN_MS);
    const leastMs = performance.now() - begun;
    held = store.openSnapshots().filter(({ heldMs }) => heldMs >= leastMs);
  }
  return held;
}

/** A held snapshot in words: `process 4711 (collab tail, stopped) holds a snapshot of the log`. */
export function describeSnapshot({ table, pid, command, stopped }: Omit<OpenSnapshot, 'heldMs'>): string {
  const about = [command, stopped ? 'stopped' : null].filter((part) => part !== null).join(', ');
  return `process ${pid}${about === '' ? '' : ` (${about})`} holds a snapshot of the ${table}`;
}
