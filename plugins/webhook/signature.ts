import { createHmac, randomBytes } from 'node:crypto';

// Standard Webhooks 1.0, https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

const PREFIX = 'whsec_';
const MIN_BYTES = 24;
const MAX_BYTES = 64;

/** A new secret: `whsec_` and 32 random bytes in base64. */
export function newSecret(): string {
  return PREFIX + randomBytes(32).toString('base64');
}

/** The fault of a secret that was not made here; null if it may be used. */
export function secretFault(secret: string): string | null {
  const wanted = `${PREFIX} and ${MIN_BYTES} to ${MAX_BYTES} bytes in base64`;
  if (!secret.startsWith(PREFIX)) return `must be ${wanted}, and does not begin with ${PREFIX}`;
  const text = secret.slice(PREFIX.length);
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) return `must be ${wanted}, and is not base64`;
  return bytes.length < MIN_BYTES || bytes.length > MAX_BYTES
    ? `must be ${wanted}, and has ${bytes.length} bytes`
    : null;
}

/**
 * The value of `webhook-signature`: a signature of the exact body with each secret, separated by spaces.
 *
 * @param timestamp seconds since the epoch
 */
export function sign(secrets: readonly string[], id: string, timestamp: number, body: string): string {
  return secrets
    .map((secret) =>
      createHmac('sha256', Buffer.from(secret.slice(PREFIX.length), 'base64'))
        .update(`${id}.${timestamp}.${body}`)
        .digest('base64'),
    )
    .map((signature) => `v1,${signature}`)
    .join(' ');
}
