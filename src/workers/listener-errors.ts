import type { Logger } from '../observability/log.ts';
import type { Store } from '../ports/store.ts';

/** Logs errors thrown by listeners of the store. The commits they were called for are valid nevertheless. */
export function logListenerErrors(store: Store, log: Logger): void {
  store.onListenerError((error) =>
    log.error(
      { err: error },
      'a listener of the store failed: the commit is stored, but sockets or event streams of this worker may have missed it',
    ),
  );
}
