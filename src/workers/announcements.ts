import type { Bus } from '../ports/bus.ts';
import type { Store } from '../ports/store.ts';

/** Announces to the other processes which streams the commits of this one make grow, and looks for the commits that they announce. Returns a function that stops it. */
export function connectStoreToBus(store: Store, bus: Bus): () => void {
  const stops = [store.onFlushed((growth) => bus.announce(growth)), bus.onAnnounce((announcement) => store.poll(announcement))];
  return () => {
    for (const stop of stops) stop();
  };
}
