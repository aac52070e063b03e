import type { CollabError } from '../errors.ts';
import type { Requests } from './requests.ts';

/** What the rooms and the inbox of a session use of it. */
export interface SessionLink {
  readonly requests: Requests;
  /** Whether there is a connection. */
  readonly isLive: () => boolean;
  /** There is something to do: connect, if the session waits for that. */
  readonly wake: () => void;
  /** Calls `ended` with the reason if the session has ended. */
  readonly notifyEnd: (part: { ended(error: CollabError): void }) => void;
}
