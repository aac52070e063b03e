import type { Bus } from '../ports/bus.ts';
import type { Store } from '../ports/store.ts';

/**
 * Announces to the other processes which streams the commits of this one make grow. Returns a function that stops it.
 */
export function announceCommits(store: Store, bus: Bus): () => void {
  return store.onFlushed((growth) => bus.announce(growth));
}

/** Looks for the commits that other processes announce. Returns a function that stops it. */
export function followAnnouncements(store: Store, bus: Bus): () => void {
  return bus.onAnnounce((announcement) => store.poll(announcement));
}
