import { hash } from 'node:crypto';

/** Identifies a content in an ETag: 22 characters of its SHA-256 as base64url, 132 bits. */
export function contentHash(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url').slice(0, 22);
}
