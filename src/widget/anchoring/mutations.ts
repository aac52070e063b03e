import { outerOf } from './geometry.ts';
import { hostOf } from './roots.ts';

/** Attributes that no search reads: a change of them can only move or hide an element. */
const LOOKS = new Set([
  'class',
  'style',
  'hidden',
  'open',
  'transform',
  'viewBox',
  'aria-expanded',
  'aria-hidden',
  'tabindex',
  'disabled',
  'inert',
]);

/** Observes the changes of a page and of the roots in it, apart from the widget. */
export class Mutations {
  readonly #observer: MutationObserver;
  #roots: readonly Node[] = [];
  #changed: Set<Node> | null = null;

  /** @param seen called after changes, with whether one of them may concern what elements are */
  constructor(apart: Element, seen: (isContent: boolean) => void) {
    this.#observer = new MutationObserver((records) => {
      const foreign = records.filter(({ target }) => target !== apart && !apart.contains(target));
      if (foreign.length === 0) return;
      const content = foreign.filter(
        ({ type, attributeName }) => type !== 'attributes' || !LOOKS.has(attributeName ?? ''),
      );
      for (const { target } of content) this.#add(target);
      seen(content.length > 0);
    });
  }

  /** Observes these roots instead of those before. Returns whether they are others. */
  observe(roots: readonly Node[]): boolean {
    if (roots.length === this.#roots.length && roots.every((root, index) => root === this.#roots[index])) return false;
    this.#observer.disconnect();
    this.#roots = roots;
    for (const root of roots)
      this.#observer.observe(root, { childList: true, subtree: true, characterData: true, attributes: true });
    return true;
  }

  /** The nodes in which something has changed since the last call; null if nothing has. */
  take(): ReadonlySet<Node> | null {
    const changed = this.#changed;
    this.#changed = null;
    return changed;
  }

  #add(target: Node): void {
    this.#changed ??= new Set();
    let at: Node | null = target.nodeType === Node.TEXT_NODE ? target.parentNode : target;
    while (at !== null && !this.#changed.has(at)) {
      this.#changed.add(at);
      at = 'localName' in at ? outerOf(at as Element) : hostOf(at);
    }
  }
}
