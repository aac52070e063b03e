import { createHash } from 'node:crypto';
import type { Kv } from '../../src/plugins/api.ts';

/** The most notifications in one mail; further ones are in the next. */
export const MAX_ITEMS = 50;

/** A notification that waits to be mailed. */
export interface Pending {
  readonly key: string;
  readonly notificationId: string;
}

/** The group of a user's jobs: an id of a user may have any characters. */
export function groupOf(userId: string): string {
  return createHash('sha256').update(userId).digest('hex').slice(0, 32);
}

/** Remembers that a notification waits to be mailed. */
export async function addPending(kv: Kv, userId: string, notificationId: string): Promise<void> {
  await kv.put(keyOf(userId, notificationId), notificationId);
}

/** Whether a notification still waits. */
export async function isPending(kv: Kv, userId: string, notificationId: string): Promise<boolean> {
  return (await kv.get(keyOf(userId, notificationId))) !== undefined;
}

/** The given notification of a user, and after it others of this user that wait: at most `MAX_ITEMS` in all. */
export async function listPending(kv: Kv, userId: string, notificationId: string): Promise<[Pending, ...Pending[]]> {
  const own = { key: keyOf(userId, notificationId), notificationId };
  const entries = await kv.list({ prefix: keyOf(userId, ''), limit: MAX_ITEMS });
  const others = entries.filter(({ key }) => key !== own.key).slice(0, MAX_ITEMS - 1);
  return [own, ...others.map(({ key, value }) => ({ key, notificationId: value as string }))];
}

/** Forgets notifications. */
export async function removePending(kv: Kv, pending: readonly Pending[]): Promise<void> {
  await Promise.all(pending.map(({ key }) => kv.delete(key)));
}

function keyOf(userId: string, notificationId: string): string {
  return `pending/${groupOf(userId)}/${notificationId}`;
}
