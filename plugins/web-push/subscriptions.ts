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
 * Stores a subscription of a user. It replaces one with the same endpoint, also that of another user: the browser has
 * changed hands, and must not show what is for the former user.
 *
 * Each subscription takes one of the user's slots, in one step: calls at the same time cannot take more than there are.
 *
 * @throws UsageError if the user has too many
 */
export async function addSubscription(
  kv: Kv,
  userId: string,
  { endpoint, keys: { p256dh, auth } }: Subscription,
): Promise<void> {
  await takeSlot(kv, userId, { endpoint, keys: { p256dh, auth } });
  const former = await kv.get(ownerKeyOf(endpoint));
  if (typeof former === 'string' && former !== userId) await deleteEntries(kv, former, endpoint);
  await kv.put(ownerKeyOf(endpoint), userId);
}

/** The subscription of a user with an endpoint; undefined if it was removed, or another user has it. */
export async function readSubscription(kv: Kv, userId: string, endpoint: string): Promise<Subscription | undefined> {
  return (await listSubscriptions(kv, userId)).find((subscription) => subscription.endpoint === endpoint);
}

/** The subscriptions of a user. */
export async function listSubscriptions(kv: Kv, userId: string): Promise<Subscription[]> {
  return (await entriesOf(kv, userId)).map(({ subscription }) => subscription);
}

/** Removes a subscription of a user; no effect if there is none. */
export async function removeSubscription(kv: Kv, userId: string, endpoint: string): Promise<void> {
  await deleteEntries(kv, userId, endpoint);
  if ((await kv.get(ownerKeyOf(endpoint))) === userId) await kv.delete(ownerKeyOf(endpoint));
}

/** Removes all subscriptions of a user, also those of a store that took more than there are slots. */
export async function removeAllOf(kv: Kv, userId: string): Promise<void> {
  for (let found = await listSubscriptions(kv, userId); found.length > 0; found = await listSubscriptions(kv, userId)) {
    for (const { endpoint } of found) await removeSubscription(kv, userId, endpoint);
  }
}

/** Puts a subscription into the slot that has its endpoint, or else into a free one. */
async function takeSlot(
  kv: Kv,
  userId: string,
  subscription: { endpoint: string; keys: { p256dh: string; auth: string } },
): Promise<void> {
  for (let tries = 0; tries < 2 * MAX_PER_USER; tries += 1) {
    const entries = await entriesOf(kv, userId);
    const own = entries.find((entry) => entry.subscription.endpoint === subscription.endpoint);
    const taken = new Set(entries.map(({ key }) => key));
    const key = own?.key ?? slotsOf(userId, subscription.endpoint).find((slot) => !taken.has(slot));
    // Entries of before there were slots count too.
    if (key === undefined || (own === undefined && entries.length >= MAX_PER_USER)) break;
    if (await kv.replace(key, own?.subscription as Payload | undefined, subscription)) return;
  }
  throw new UsageError(`A user may have ${MAX_PER_USER} subscriptions. Remove one first.`);
}

interface Entry {
  readonly key: string;
  readonly subscription: Subscription;
}

async function entriesOf(kv: Kv, userId: string): Promise<Entry[]> {
  const entries = await kv.list({ prefix: prefixOf(userId), limit: 2 * MAX_PER_USER });
  return entries.map(({ key, value }) => ({ key, subscription: value as unknown as Subscription }));
}

async function deleteEntries(kv: Kv, userId: string, endpoint: string): Promise<void> {
  for (const { key, subscription } of await entriesOf(kv, userId))
    if (subscription.endpoint === endpoint) await kv.delete(key);
}

/**
 * The keys of a user's slots, in the order in which an endpoint tries them: two calls with one endpoint meet at the
 * first free one.
 */
function slotsOf(userId: string, endpoint: string): string[] {
  const first = Number.parseInt(hashOf(endpoint).slice(0, 8), 16) % MAX_PER_USER;
  return Array.from(
    { length: MAX_PER_USER },
    (_, i) => `${prefixOf(userId)}${String((first + i) % MAX_PER_USER).padStart(2, '0')}`,
  );
}

/** The subscription in the body of a request. @throws UsageError naming what is wrong */
export function parseSubscription(body: string): Subscription {
  const value = parseJson(body);
  if (!Check(SubscriptionSchema, value))
    throw new UsageError(
      'The body must be a push subscription: {"endpoint": "https://…", "keys": {"p256dh": "…", "auth": "…"}}',
    );
  const { endpoint, keys } = value;
  if (!isPushAddress(endpoint)) throw new UsageError('endpoint must be an https URL');
  // RFC 8291: an uncompressed point of P-256, and a secret of 16 bytes.
  if (!isPoint(Buffer.from(keys.p256dh, 'base64url')))
    throw new UsageError('keys.p256dh must be an uncompressed P-256 public key of 65 bytes in base64url');
  if (Buffer.from(keys.auth, 'base64url').length !== 16)
    throw new UsageError('keys.auth must be 16 bytes in base64url');
  return value;
}

/** The `endpoint` in the body of a request. @throws UsageError if there is none */
export function parseEndpoint(body: string): string {
  const value = parseJson(body);
  if (!Check(Type.Object({ endpoint: Type.String() }), value))
    throw new UsageError('The body must be {"endpoint": "https://…"}');
  return value.endpoint;
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new UsageError('The body is not JSON');
  }
}

/**
 * Browsers have https addresses alone. http on this machine is for tests, and refused by the host unless private
 * addresses are allowed.
 */
function isPushAddress(endpoint: string): boolean {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  return url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && url.hostname === '127.0.0.1'));
}

function prefixOf(userId: string): string {
  return `subscription/${hashOf(userId)}/`;
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
