import { CollabError, type CollabErrorCode } from '../errors.ts';

/** The effect of a close code of the server on the session (docs/realtime.md, "Close codes"). */
export type CloseAction = 'stop' | 'retry' | 'retry-slowly' | 'new-token';

/** The meaning of a close code if the reason does not say it. */
const errors: Readonly<Record<number, CollabErrorCode>> = {
  1002: 'protocol',
  4400: 'invalid_request',
  4429: 'rate_limited',
  4500: 'internal',
};

const actions: Readonly<Record<number, CloseAction>> = {
  1000: 'stop',
  4400: 'stop',
  4403: 'stop',
  4401: 'new-token',
  4429: 'retry-slowly',
};

/** The action after a socket has closed with this code. */
export const actionOf = (code: number): CloseAction => actions[code] ?? 'retry';

const texts: Readonly<Partial<Record<CollabErrorCode, string>>> = {
  network: 'The connection was lost. It is being restored; what you write meanwhile is sent then.',
  rate_limited: 'Too many requests were sent. The connection is restored in a few seconds.',
  invalid_key: 'The server does not accept the publishable key of this page. The site’s operator has to check it.',
  missing_credentials: 'The server received no credentials of this page. Reload the page to sign in again.',
  invalid_token: 'The server does not accept your sign-in. Reload the page to sign in again.',
  token_expired: 'Your sign-in has expired. Reload the page to sign in again.',
  token_failed:
    'The page could not sign you in to the comments. It tries again by itself; if this stays, reload the page.',
  origin_not_allowed: 'Comments are not enabled for the address of this page. The site’s operator has to allow it.',
  environment_disabled: 'Comments were switched off by their operator.',
  forbidden: 'You have no access to these comments. Ask the site’s operator.',
  invalid_request:
    'The page and the comments server do not understand each other. Reload the page to get its latest version.',
  protocol: 'The server is not a Collab server. The site’s operator has to check its address.',
  internal: 'The comments server has a problem. The connection is being restored.',
};

/** The text of a session's state for people. */
export function reasonFor(error: CollabError): string {
  return texts[error.code] ?? error.message;
}

/**
 * The error of a closed socket. `refusal` is the error frame without an id that the server sent right before it, if
 * any.
 */
export function closeError(code: number, reason: string, refusal: CollabError | null): CollabError {
  // Without a close code of the server, the last error frame was about something else.
  if (code > 4000 && refusal) return refusal;
  const byReason = reason as CollabErrorCode;
  const known = code > 4000 && texts[byReason] ? byReason : errors[code];
  const about = `${code}${reason === '' ? '' : `, ${reason}`}`;
  return new CollabError(known ?? 'network', `The connection was ${known ? 'closed' : 'lost'} (${about}).`);
}
