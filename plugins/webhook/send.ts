import type { Http } from '../../src/plugins/api.ts';
import { type Endpoint, secretsAt } from './endpoints.ts';
import type { Message } from './body.ts';
import { sign } from './signature.ts';

const TIMEOUT_MS = 15_000;
/** More of an answer is of no use to anybody. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** The outcome of one attempt. `status` is null if there was no answer. */
export type Outcome =
  | { readonly ok: true; readonly status: number }
  | {
      readonly ok: false;
      readonly status: number | null;
      readonly reason: string;
      readonly retryAfterMs: number | null;
    };

/** Sends a message to an endpoint once. Only an answer of 2xx is a success. Never rejects. */
export async function send(
  http: Http,
  endpoint: Endpoint,
  { eventId, body }: Pick<Message, 'eventId' | 'body'>,
  now: number,
): Promise<Outcome> {
  const timestamp = Math.floor(now / 1_000);
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Collab-Webhooks/1',
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': sign(secretsAt(endpoint, now), eventId, timestamp, body),
  };
  try {
    const { status, retryAfterMs } = await http.request(endpoint.url, {
      method: 'POST',
      headers,
      body,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_ANSWER_BYTES,
    });
    return status >= 200 && status < 300
      ? { ok: true, status }
      : { ok: false, status, reason: meaningOf(status), retryAfterMs };
  } catch (error) {
    return {
      ok: false,
      status: null,
      reason: error instanceof Error ? error.message : String(error),
      retryAfterMs: null,
    };
  }
}

function meaningOf(status: number): string {
  if (status >= 300 && status < 400)
    return `answered ${status}: redirects are not followed, so the endpoint needs the final URL`;
  return `answered ${status}`;
}
