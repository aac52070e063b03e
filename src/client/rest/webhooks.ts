import { CollabError } from '../errors.ts';

/** Difference between the times of sender and receiver that is accepted, in seconds (Standard Webhooks 1.0). */
const TOLERANCE_S = 300;

/** A delivery as your HTTP server received it. */
export interface WebhookDelivery {
  /** The body, unchanged: parsing and rendering it again changes the bytes that were signed. */
  readonly body: string | Uint8Array | ArrayBuffer;
  /** The headers; their names in any case. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The secret of the webhook, `whsec_…`; during a rotation both. */
  readonly secret: string | readonly string[];
  /** The time to compare with, in milliseconds since the epoch; now if absent. */
  readonly now?: number | undefined;
}

/** A webhook whose signature is valid. */
export interface VerifiedWebhook {
  /** The same at every attempt to deliver: what was handled once need not be handled again. */
  readonly id: string;
  /** When this attempt was signed. */
  readonly sentAt: Date;
  readonly type: string;
  /** `timestamp` of the body: when the event happened. */
  readonly timestamp: string;
  readonly data: unknown;
}

/**
 * Checks the signature of a webhook (Standard Webhooks 1.0: HMAC-SHA256 of `<id>.<timestamp>.<body>`) and returns its
 * content. Rejects with `invalid_signature` if it was not signed with the secret, was changed, or is older or newer
 * than 5 minutes; with `invalid_request` if `secret` or `body` are not what the application must pass; and with
 * `protocol` if it was rightly signed but is not of Collab.
 */
export async function verifyWebhook({
  body,
  headers,
  secret,
  now = Date.now(),
}: WebhookDelivery): Promise<VerifiedWebhook> {
  const keys = (typeof secret === 'object' && secret !== null ? secret : [secret]).map(keyBytes);
  const bytes = bodyBytes(body);
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature')
    .split(/,? /)
    .filter((one) => one.startsWith('v1,'))
    .map((one) => one.slice('v1,'.length));
  const seconds = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN;
  if (id === '' || Number.isNaN(seconds) || signatures.length === 0)
    throw invalid(
      'The headers webhook-id, webhook-timestamp and webhook-signature are missing or malformed: this is not a webhook of Collab.',
    );
  if (Math.abs(now / 1_000 - seconds) > TOLERANCE_S)
    throw invalid('The webhook is more than 5 minutes old, or the clock of this machine is wrong.');

  const content = new Uint8Array(await new Blob([`${id}.${timestamp}.`, bytes]).arrayBuffer());
  const checks = await Promise.all(
    keys.flatMap((key) => signatures.map((signature) => isSigned(key, signature, content))),
  );
  if (!checks.includes(true))
    throw invalid('No signature of the webhook matches: the secret is wrong, or the body was changed on the way.');
  const { type, timestamp: at, data } = parse(bytes);
  return { id, sentAt: new Date(seconds * 1_000), type, timestamp: at, data };
}

/** The key in a secret. What is not set in the environment arrives here as undefined or empty. */
function keyBytes(secret: unknown): Uint8Array<ArrayBuffer> {
  const key =
    typeof secret === 'string'
      ? decodeBase64(secret.replace(/^whsec_/, ''), 'The secret of a webhook')
      : new Uint8Array();
  // With an empty key anybody could sign; 24 bytes is the least of Standard Webhooks.
  if (key.length < 24)
    throw new CollabError(
      'invalid_request',
      'secret must be the secret of the webhook: whsec_ and at least 24 bytes in base64',
    );
  return key;
}

function bodyBytes(body: unknown): Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  if (ArrayBuffer.isView(body)) return body as Uint8Array<ArrayBuffer>;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new CollabError(
    'invalid_request',
    'body must be the body as it was received, as text or bytes: what was parsed cannot be verified.',
  );
}

function parse(bytes: Uint8Array): { type: string; timestamp: string; data: unknown } {
  try {
    // A byte order mark is signed, and no JSON: the decoder drops it.
    const content = JSON.parse(new TextDecoder().decode(bytes)) as unknown;
    if (typeof content === 'object' && content !== null) return content as ReturnType<typeof parse>;
  } catch {
    // The error below covers text that is no JSON.
  }
  throw new CollabError(
    'protocol',
    'The webhook is rightly signed, but its body is not a JSON object: it is not one of Collab.',
  );
}

async function isSigned(
  secret: Uint8Array<ArrayBuffer>,
  signature: string,
  content: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = decodeBase64(signature, 'A signature');
  } catch {
    return false;
  }
  // `verify` compares in constant time.
  return crypto.subtle.verify('HMAC', key, bytes, content);
}

function decodeBase64(text: string, what: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch (cause) {
    throw new CollabError('invalid_request', `${what} must be base64.`, { cause });
  }
}

function headerOf(headers: WebhookDelivery['headers'], name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const value = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof value === 'string' ? value : (value ?? []).join(' ');
}

const invalid = (message: string): CollabError => new CollabError('invalid_signature', message);
