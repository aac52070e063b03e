import type { Logger } from '../observability/log.ts';
import type { Store } from '../ports/store.ts';

/** Logs what listeners of the store throw: the commits that they were told of stand all the same. */
export function reportFaults(store: Store, log: Logger): void {
  store.onListenerError((error) => log.error({ err: error }, 'a listener of the store failed: what it was told of is committed, but sockets or streams of this worker may lack it'));
}
