import { createHash, ECDH } from 'node:crypto';
import * as Type from 'typebox';
import type { Static } from 'typebox';
import { Check } from 'typebox/value';
import { type Kv, type Payload, UsageError } from '../../src/plugins/api.ts';

/** The most subscriptions of one user: one per browser. */
const MAX_PER_USER = 20;

const SubscriptionSchema = Type.Object({
  endpoint: Type.String({ minLength: 1, maxLength: 2_048 }),
  keys: Type.Object({ p256dh: Type.String({ maxLength: 200 }), auth: Type.String({ maxLength: 100 }) }),
});
/** The result of `PushSubscription.toJSON()` in a browser. */
export type Subscription = Static<typeof SubscriptionSchema>;

/**
 * Stores a subscription of a user. It replaces one with the same endpoint, also that of another user: the browser has changed
 * hands, and must not show what is for the former user.
 *
 * @throws UsageError if the user has too many
 */
export async function addSubscription(kv: Kv, userId: string, { endpoint, keys: { p256dh, auth } }: Subscription): Promise<void> {
  const stored = await listSubscriptions(kv, userId);
  if (stored.length >= MAX_PER_USER && !stored.some((other) => other.endpoint === endpoint)) throw new UsageError(`A user may have ${MAX_PER_USER} subscriptions. Remove one first.`);
  const former = await kv.get(ownerKeyOf(endpoint));
  if (typeof former === 'string' && former !== userId) await kv.delete(keyOf(former, endpoint));
  const value: Payload = { endpoint, keys: { p256dh, auth } };
  await kv.put(keyOf(userId, endpoint), value);
  await kv.put(ownerKeyOf(endpoint), userId);
}

/** The subscription of a user with an endpoint; undefined if it was removed, or another user has it. */
export async function readSubscription(kv: Kv, userId: string, endpoint: string): Promise<Subscription | undefined> {
  return (await kv.get(keyOf(userId, endpoint))) as Subscription | undefined;
}

/** The subscriptions of a user. */
export async function listSubscriptions(kv: Kv, userId: string): Promise<Subscription[]> {
  const entries = await kv.list({ prefix: prefixOf(userId), limit: MAX_PER_USER });
  return entries.map(({ value }) => value as unknown as Subscription);
}

/** Removes a subscription of a user; no effect if there is none. */
export async function removeSubscription(kv: Kv, userId: string, endpoint: string): Promise<void> {
  await kv.delete(keyOf(userId, endpoint));
  if ((await kv.get(ownerKeyOf(endpoint))) === userId) await kv.delete(ownerKeyOf(endpoint));
}

/** Removes all subscriptions of a user. */
export async function removeAllOf(kv: Kv, userId: string): Promise<void> {
  for (const { endpoint } of await listSubscriptions(kv, userId)) await removeSubscription(kv, userId, endpoint);
}

/** The subscription in the body of a request. @throws UsageError naming what is wrong */
export function parseSubscription(body: string): Subscription {
  const value = parseJson(body);
  if (!Check(SubscriptionSchema, value)) throw new UsageError('The body must be a push subscription: {"endpoint": "https://…", "keys": {"p256dh": "…", "auth": "…"}}');
  const { endpoint, keys } = value;
  if (!isPushAddress(endpoint)) throw new UsageError('endpoint must be an https URL');
  // RFC 8291: an uncompressed point of P-256, and a secret of 16 bytes.
  if (!isPoint(Buffer.from(keys.p256dh, 'base64url'))) throw new UsageError('keys.p256dh must be an uncompressed P-256 public key of 65 bytes in base64url');
  if (Buffer.from(keys.auth, 'base64url').length !== 16) throw new UsageError('keys.auth must be 16 bytes in base64url');
  return value;
}

/** The `endpoint` in the body of a request. @throws UsageError if there is none */
export function parseEndpoint(body: string): string {
  const value = parseJson(body);
  if (!Check(Type.Object({ endpoint: Type.String() }), value)) throw new UsageError('The body must be {"endpoint": "https://…"}');
  return value.endpoint;
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new UsageError('The body is not JSON');
  }
}

/** Browsers have https addresses alone. http on this machine is for tests, and refused by the host unless private addresses are allowed. */
function isPushAddress(endpoint: string): boolean {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  return url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && url.hostname === '127.0.0.1'));
}

function prefixOf(userId: string): string {
  return `subscription/${hashOf(userId)}/`;
}

function keyOf(userId: string, endpoint: string): string {
  return prefixOf(userId) + hashOf(endpoint);
}

function ownerKeyOf(endpoint: string): string {
  return `owner/${hashOf(endpoint)}`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Whether the bytes are an uncompressed point on the curve P-256: nothing can be encrypted for another one. */
function isPoint(bytes: Buffer): boolean {
  if (bytes.length !== 65 || bytes[0] !== 4) return false;
  try {
    ECDH.convertKey(bytes, 'prime256v1');
    return true;
  } catch {
    return false;
  }
}
