import { randomBytes } from 'node:crypto';

const processPrefix = randomBytes(6).toString('base64url');
const generated = { count: 0 };

/**
 * Whether a client's `X-Request-Id` is well-formed and therefore used: 1 to 64 letters, digits, dots, underscores or
 * hyphens.
 */
export function isRequestId(text: string): boolean {
  return text !== '' && /^[A-Za-z0-9._-]{1,64}$/.test(text);
}

/** A request id that no other request of any process has: a random prefix per process, and a counter. */
export function newRequestId(): string {
  generated.count += 1;
  return `${processPrefix}-${generated.count.toString(36)}`;
}
