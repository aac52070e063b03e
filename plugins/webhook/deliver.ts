import { Permanent, type Job, type PluginEnvironment, type PluginHost, RetryAfter } from '../../src/plugins/api.ts';
import { changeEndpoint, type Endpoint, readEndpoint } from './endpoints.ts';
import { currentBody, type Message } from './body.ts';
import { send } from './send.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Waits before the second to eighth attempt, from the examples of Standard Webhooks. */
export const RETRY_DELAYS_MS: readonly number[] = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  10 * HOUR,
];
/** An endpoint that has failed for this long is disabled. */
const DISABLE_AFTER_MS = 5 * DAY;
/** The longest `retry-after` that is obeyed. */
const MAX_RETRY_AFTER_MS = DAY;

/** The payload of a job: a message for an endpoint. */
export interface Delivery extends Message {
  readonly endpointId: string;
}

/** The id of the job that delivers an event to an endpoint. */
export function deliveryId(endpointId: string, eventId: string): string {
  return `${endpointId}:${eventId}`;
}

/**
 * One attempt at a delivery. Resolves when it is delivered, or when its endpoint was removed.
 *
 * @throws Permanent if the endpoint is disabled, or answers 410, which disables it
 * @throws RetryAfter if the endpoint asks for a longer wait than planned
 * @throws Error otherwise: the queue tries again
 */
export async function deliver(
  host: PluginHost<unknown>,
  job: Job,
  attempt: number,
  environment: PluginEnvironment,
): Promise<void> {
  const delivery = job.payload as unknown as Delivery;
  const { endpointId, eventId, seq } = delivery;
  const kv = host.kv(environment);
  const endpoint = await readEndpoint(kv, endpointId);
  if (endpoint === undefined) return;
  if (endpoint.disabled !== null) throw new Permanent(`the endpoint is disabled: ${endpoint.disabled}`);

  const body = await currentBody(host.data, environment, delivery);
  const outcome = await send(host.http, endpoint, { eventId, body }, host.now());
  const fields = {
    environment: environment.slug,
    endpoint: endpointId,
    url: endpoint.url,
    event: eventId,
    seq,
    attempt,
  };
  if (outcome.ok) {
    if (endpoint.failing === null) return;
    await changeEndpoint(kv, endpointId, (current) =>
      current.failing === null ? current : { ...current, failing: null },
    );
    host.log.info(fields, 'a webhook endpoint answers again');
    return;
  }

  const { reason, status, retryAfterMs } = outcome;
  const now = host.now();
  const after = await changeEndpoint(kv, endpointId, (current) => failed(current, reason, status === 410, now));
  if (after === undefined) return;
  if (after.disabled !== null) {
    host.log.error(
      { ...fields, reason: after.disabled },
      'a webhook endpoint was disabled; `collab webhook enable` enables it',
    );
    throw new Permanent(reason);
  }
  if (endpoint.failing === null)
    host.log.warn({ ...fields, reason }, 'a webhook endpoint fails; its deliveries are tried again');
  const planned = RETRY_DELAYS_MS[attempt - 1];
  if (planned === undefined)
    host.log.error(
      { ...fields, reason },
      'a webhook was not delivered after its last attempt; `collab webhook failed` lists it',
    );
  else if (retryAfterMs !== null && retryAfterMs > planned && (status === 429 || status === 503))
    throw new RetryAfter(reason, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
  throw new Error(reason);
}

/**
 * The endpoint after a failed attempt. The reason of the first failure is kept, so that a failing endpoint is not
 * written each time.
 */
function failed(endpoint: Endpoint, reason: string, gone: boolean, now: number): Endpoint {
  if (endpoint.disabled !== null) return endpoint;
  if (gone) return { ...endpoint, disabled: 'it answered 410 (gone)' };
  if (endpoint.failing === null) return { ...endpoint, failing: { since: now, reason } };
  return now - endpoint.failing.since < DISABLE_AFTER_MS
    ? endpoint
    : { ...endpoint, disabled: `every delivery has failed for 5 days: ${reason}` };
}
