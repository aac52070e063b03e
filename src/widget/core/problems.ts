import type { CollabErrorCode } from '../../client/errors.ts';
import type { StringKey } from '../strings/en.ts';
import type { Language } from '../strings/language.ts';

/** The part of a `CollabError` that the explanation depends on. */
export interface Problem {
  readonly code: CollabErrorCode;
  readonly message: string;
  readonly retryAfter: number | null;
}

const texts: Partial<Record<CollabErrorCode, StringKey>> = {
  missing_credentials: 'errorTokenInvalid',
  invalid_key: 'errorKey',
  invalid_token: 'errorTokenInvalid',
  token_expired: 'errorToken',
  token_failed: 'errorSignIn',
  origin_not_allowed: 'errorOrigin',
  environment_disabled: 'errorDisabled',
  forbidden: 'errorForbidden',
  rate_limited: 'errorRate',
  quota_exceeded: 'errorQuota',
  thread_not_found: 'errorGone',
  comment_not_found: 'errorGone',
  reaction_not_found: 'errorGone',
  network: 'errorConnection',
  timeout: 'errorConnection',
  closed: 'errorConnection',
};

/**
 * Problems that the server's own message explains to the reader: the field and its bound, or why content was refused.
 */
const selfExplaining = new Set<CollabErrorCode>([
  'invalid_request',
  'unknown_user',
  'payload_too_large',
  'content_rejected',
]);

/** How long to wait when the server does not say. */
const DEFAULT_WAIT_SECONDS = 5;

/** One or two sentences for the reader: what happened, and what to do. */
export function explain(thrown: unknown, language: Language): string {
  const problem = asProblem(thrown);
  const key = texts[problem.code];
  if (key !== undefined)
    return language.text(key, { seconds: problem.retryAfter ?? DEFAULT_WAIT_SECONDS, origin: location.origin });
  return selfExplaining.has(problem.code) ? problem.message : language.text('errorServer');
}

/** Why a session could not be opened with the attributes of the element, for the developer of the page. */
export function explainSetup(thrown: unknown, language: Language): string {
  // The session names its options, the page has attributes.
  const reason = asProblem(thrown)
    .message.replace('serverUrl', 'base-url')
    .replace('publishableKey', 'publishable-key');
  return language.text('errorAttribute', { reason });
}

/** Why a file was not uploaded. */
export function explainUpload(thrown: unknown, name: string, language: Language): string {
  const problem = asProblem(thrown);
  const limit = /max (\d+) ?MB/i.exec(problem.message)?.[1];
  if (problem.code === 'file_too_large' || problem.code === 'payload_too_large') {
    return limit === undefined
      ? language.text('errorTooLargeUnknown', { name })
      : language.text('errorTooLarge', { name, limit });
  }
  if (problem.code === 'unsupported_media') return language.text('errorType', { name });
  if (problem.code === 'invalid_request') return language.text('errorFile', { name });
  if (texts[problem.code] === 'errorConnection') return language.text('errorUpload', { name });
  if (problem.code === 'media_disabled') return language.text('errorMediaDisabled', { name });
  return explain(thrown, language);
}

/** A thrown value as a problem: anything unknown counts as `internal`. */
export function asProblem(thrown: unknown): Problem {
  const { code, message, retryAfter } = (thrown ?? {}) as Partial<Problem>;
  return { code: typeof code === 'string' ? code : 'internal', message: message ?? '', retryAfter: retryAfter ?? null };
}
