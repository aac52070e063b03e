import { randomBytes } from 'node:crypto';
import { eventTypes, type Kv, type Payload, type PluginEvent } from '../../src/plugins/api.ts';

/** The prefix of the keys of endpoints in the plugin's storage. */
export const ENDPOINT_PREFIX = 'endpoint/';
/** The field of an endpoint that lists the types of events which it receives. */
export const TYPES_FIELD = 'events' satisfies keyof Endpoint;
/** The most endpoints in one environment. */
export const MAX_ENDPOINTS = 100;
/** The most secrets of an endpoint that sign beside the current one. */
export const MAX_PREVIOUS = 5;

/** A secret that was replaced. */
export interface PreviousSecret {
  readonly secret: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** The receiver of webhooks. Times are milliseconds since the epoch. */
export interface Endpoint {
  readonly id: string;
  readonly url: string;
  /** The types of events that it receives; null for all but those about moderation. */
  readonly events: readonly string[] | null;
  readonly secret: string;
  /** The secrets before the last rotations, the newest first. Each signs too until its `until`. */
  readonly previous: readonly PreviousSecret[];
  /** Why it receives nothing; null if it does. */
  readonly disabled: string | null;
  /** Since when every delivery has failed; null while the last one succeeded. */
  readonly failing: { readonly since: number; readonly reason: string } | null;
  readonly createdAt: number;
}

/** A new id of an endpoint. */
export function newEndpointId(): string {
  return `wh_${randomBytes(12).toString('base64url')}`;
}

/** The endpoints of an environment, in the order of their ids. */
export async function listEndpoints(kv: Kv): Promise<Endpoint[]> {
  const entries = await kv.list({ prefix: ENDPOINT_PREFIX, limit: MAX_ENDPOINTS });
  return entries.map(({ value }) => endpointOf(value));
}

/** The endpoint with an id; undefined if there is none. */
export async function readEndpoint(kv: Kv, id: string): Promise<Endpoint | undefined> {
  const stored = await kv.get(ENDPOINT_PREFIX + id);
  return stored === undefined ? undefined : endpointOf(stored);
}

/** Stores a new endpoint. */
export async function addEndpoint(kv: Kv, endpoint: Endpoint): Promise<void> {
  await kv.put(ENDPOINT_PREFIX + endpoint.id, asPayload(endpoint));
}

/** Removes an endpoint; no effect if there is none. */
export async function removeEndpoint(kv: Kv, id: string): Promise<void> {
  await kv.delete(ENDPOINT_PREFIX + id);
}

/**
 * Changes an endpoint and returns it; undefined if there is none. `change` may run several times; an endpoint that it
 * returns as it was is not written.
 */
export async function changeEndpoint(
  kv: Kv,
  id: string,
  change: (endpoint: Endpoint) => Endpoint,
): Promise<Endpoint | undefined> {
  for (;;) {
    const stored = await kv.get(ENDPOINT_PREFIX + id);
    if (stored === undefined) return undefined;
    const current = endpointOf(stored);
    const changed = change(current);
    if (changed === current || (await kv.replace(ENDPOINT_PREFIX + id, stored, asPayload(changed)))) return changed;
  }
}

/** The event that endpoints which ask for no types received before there were others about moderation. */
const ALWAYS_SENT = 'moderation.rejected';

/**
 * Whether an endpoint receives events of this type now. What moderators have not approved is sent only to who asks for
 * it.
 */
export function receives({ disabled, events }: Endpoint, { type }: PluginEvent): boolean {
  if (disabled !== null) return false;
  return events === null ? !type.startsWith('moderation.') || type === ALWAYS_SENT : events.includes(type);
}

/** Those of the replaced secrets that sign too at `now`. */
export function previousAt(previous: readonly PreviousSecret[], now: number): PreviousSecret[] {
  return previous.filter(({ until }) => now < until);
}

/** The secrets that sign a delivery at `now`, the current one first. */
export function secretsAt({ secret, previous }: Endpoint, now: number): string[] {
  return [secret, ...previousAt(previous, now).map((one) => one.secret)];
}

/** The fault of the address of an endpoint; null if it may be used. */
export function urlFault(url: string): string | null {
  if (url.length > 2_048) return `has ${url.length} characters; at most 2048 are allowed`;
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !['http:', 'https:'].includes(parsed.protocol))
    return 'must be an http or https URL, such as https://example.com/webhooks';
  return parsed.username === '' && parsed.password === ''
    ? null
    : 'must not contain a user name or password; the signature authenticates a delivery';
}

/** The first of these that is no type of event; undefined if all are. */
export function unknownType(types: readonly string[]): string | undefined {
  const known: readonly string[] = eventTypes;
  return types.find((type) => !known.includes(type));
}

function asPayload(endpoint: Endpoint): Payload {
  return { ...endpoint, previous: endpoint.previous.map((one) => ({ ...one })) };
}

/** A stored endpoint. Until 0.2 it had at most one previous secret, which was not in a list. */
function endpointOf(stored: unknown): Endpoint {
  const endpoint = stored as Omit<Endpoint, 'previous'> & {
    readonly previous: readonly PreviousSecret[] | PreviousSecret | null;
  };
  return { ...endpoint, previous: endpoint.previous === null ? [] : [endpoint.previous].flat() };
}
