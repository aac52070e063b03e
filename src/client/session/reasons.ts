import { CollabError, type CollabErrorCode } from '../errors.ts';

/** What a close code of the server means for the session (docs/realtime.md, "Close codes"). */
export type CloseAction = 'stop' | 'retry' | 'retry-slowly' | 'new-token';

/** What to do after a socket has closed with this code. */
export function actionOf(code: number): CloseAction {
  switch (code) {
    case 1000:
    case 4400:
    case 4403:
      return 'stop';
    case 4401:
      return 'new-token';
    case 4429:
      return 'retry-slowly';
    default:
      return 'retry';
  }
}

const texts: Readonly<Partial<Record<CollabErrorCode, string>>> = {
  network: 'The connection was lost. It is being restored; what you write meanwhile is sent then.',
  rate_limited: 'Too many requests were sent. The connection is restored in a few seconds.',
  invalid_key: 'The server does not accept the publishable key of this page. The site’s operator has to check it.',
  missing_credentials: 'The server did not receive the credentials of this page. Reload the page to sign in again.',
  invalid_token: 'The server does not accept your sign-in. Reload the page to sign in again.',
  token_expired: 'Your sign-in has expired. Reload the page to sign in again.',
  token_failed: 'The page could not sign you in to the comments. It tries again by itself; if this stays, reload the page.',
  origin_not_allowed: 'Comments are not enabled for the address of this page. The site’s operator has to allow it.',
  environment_disabled: 'Comments were switched off by their operator.',
  forbidden: 'You have no access to these comments. Ask the site’s operator.',
  invalid_request: 'The page and the comments server do not understand each other. Reload the page to get its latest version.',
  internal: 'The comments server has a problem. The connection is being restored.',
};

/** The text of a session's state for people. */
export function reasonFor(error: CollabError): string {
  return texts[error.code] ?? error.message;
}

/** The error of a closed socket. `refusal` is the error frame that the server sent before it, if any. */
export function closeError(code: number, reason: string, refusal: CollabError | null): CollabError {
  if (refusal !== null) return refusal;
  const byReason = reason as CollabErrorCode;
  if (code > 4000 && texts[byReason] !== undefined) return new CollabError(byReason, `The server closed the connection: ${reason}.`);
  if (code === 4429) return new CollabError('rate_limited', `The server closed the connection: ${reason === '' ? 'rate_limited' : reason}.`);
  if (code === 4400) return new CollabError('invalid_request', 'The server could not read a message of this page.');
  if (code === 4500) return new CollabError('internal', 'The server closed the connection because of an internal error.');
  return new CollabError('network', `The connection was lost (${code}${reason === '' ? '' : `, ${reason}`}).`);
}
