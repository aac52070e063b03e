import type { Placement } from './anchoring/tracker.ts';
import type { App } from './core/app.ts';
import { isField, isOfInputMethod } from './typing.ts';

/** The keys to comment, and for the next and the previous thread, if the page names none. */
const KEYS = ['c', 'n', 'p'] as const;

/**
 * Does what a key of the shortcuts stands for. A key that the page has handled, declares for something of its own
 * (`aria-keyshortcuts`, `accesskey`), or takes as text is not one.
 *
 * @param keys the attribute `shortcuts`: up to three keys, with white space between them
 */
export function onShortcut(
  event: KeyboardEvent,
  keys: string,
  app: App,
  placements: ReadonlyMap<string, Placement>,
): void {
  const { key, altKey, ctrlKey, metaKey, defaultPrevented } = event;
  const [target] = event.composedPath();
  if (
    defaultPrevented ||
    altKey ||
    ctrlKey ||
    metaKey ||
    isOfInputMethod(event) ||
    isField(target ?? null) ||
    target instanceof HTMLSelectElement
  )
    return;
  const wanted = keys.trim() === '' ? KEYS : keys.trim().split(/\s+/);
  const at = wanted.findIndex((each) => each.toLowerCase() === key.toLowerCase());
  const name = CSS.escape(key);
  if (
    at < 0 ||
    at >= KEYS.length ||
    document.querySelector(`[aria-keyshortcuts~="${name}" i], [accesskey~="${name}" i]`) !== null
  )
    return;
  event.preventDefault();
  if (at === 0) app.startComment();
  else openNeighbour(app, placements, at === 1 ? 1 : -1);
}

/** Opens the thread whose pin comes after or before that of the open one, from the top of the page to its end. */
function openNeighbour(app: App, placements: ReadonlyMap<string, Placement>, step: 1 | -1): void {
  const places = [...placements].flatMap(([id, place]) =>
    place.state === 'shown' && app.thread(id)?.resolved === false ? [{ id, place }] : [],
  );
  const ids = places.toSorted((a, b) => a.place.y - b.place.y || a.place.x - b.place.x).map(({ id }) => id);
  const at = ids.indexOf(app.view.open?.threadId ?? app.view.pin ?? '');
  const next = ids.at(at < 0 && step < 0 ? -1 : (at + step) % ids.length);
  if (next !== undefined) app.openThread(next);
}
