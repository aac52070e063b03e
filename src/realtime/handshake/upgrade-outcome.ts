import type { AuthenticatedUser } from '../../domain/access/tokens.ts';
import type { CollabError } from '../../model/errors.ts';
import type { ResumePoint } from '../feed/resume-point.ts';

/** The upgrade request of a socket that authenticates in its first message. */
export interface HandshakeInfo {
  /** Address of the client, as returned by `normaliseAddress`. */
  readonly address: string;
  /** Origin of the page; '' for none. */
  readonly origin: string;
  /** Publishable key from the query; '' for none. */
  readonly key: string;
  readonly resume: ResumePoint | null;
}

/** The result of an upgrade request, which `open` acts on. */
export type UpgradeOutcome =
  | { readonly kind: 'authenticated'; readonly user: AuthenticatedUser; readonly resume: ResumePoint | null }
  /** Credentials come in the first message. */
  | { readonly kind: 'pending'; readonly info: HandshakeInfo }
  | { readonly kind: 'refused'; readonly error: CollabError }
  /** The server is shutting down. */
  | { readonly kind: 'closing' };
