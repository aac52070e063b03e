/** Events after which something may move for a while. */
const EVENTS = [
  'scroll',
  'transitionrun',
  'transitionend',
  'animationstart',
  'animationend',
  'input',
  'change',
  'click',
  'keydown',
  'pointerdown',
  'pointerover',
  'pointerout',
  'toggle',
  'load',
  'focusin',
  'focusout',
  'play',
  'wheel',
] as const;
/** After something may have moved, it is looked at for this long, in milliseconds; longer while it moves. */
const WATCH_MS = 600;
/** An element that is cut by an edge wakes the watch when this part of it appears or disappears. */
const THRESHOLDS = Array.from({ length: 51 }, (_, index) => index / 50);

/**
 * Calls `frame` in each frame in which elements of the page may move: for a while after a change, an event, or a move.
 * While nothing moves, and while the page is not visible, it does nothing but wait: observers of the browser tell of
 * moves without any event, such as that of a style sheet.
 */
export class Activity {
  readonly #page: Document;
  readonly #frame: (isFirst: boolean) => boolean;
  readonly #watched: () => Iterable<Element>;
  readonly #loaded: () => void;
  #sizes: ResizeObserver | null = null;
  #places: IntersectionObserver[] = [];
  #documents: readonly Document[] = [];
  #request = 0;
  #until = 0;
  #isFirst = true;
  #pointers = false;

  /**
   * @param frame called once per frame, with whether there was none just before; returns whether anything has moved
   * @param watched the elements that are followed
   * @param loaded called when a frame has another document, of which no observer tells
   */
  constructor(
    page: Document,
    frame: (isFirst: boolean) => boolean,
    watched: () => Iterable<Element>,
    loaded: () => void,
  ) {
    this.#page = page;
    this.#frame = frame;
    this.#watched = watched;
    this.#loaded = loaded;
  }

  /** Begins to listen to events of these documents, instead of those before. */
  listen(documents: readonly Document[]): void {
    for (const document of this.#documents) {
      for (const event of EVENTS) document.removeEventListener(event, this.wake, true);
      document.removeEventListener('pointermove', this.#onMove, true);
      document.removeEventListener('load', this.#onLoad, true);
      document.defaultView?.removeEventListener('resize', this.wake);
    }
    for (const document of documents) {
      for (const event of EVENTS) document.addEventListener(event, this.wake, { capture: true, passive: true });
      document.addEventListener('pointermove', this.#onMove, { capture: true, passive: true });
      document.addEventListener('load', this.#onLoad, { capture: true, passive: true });
      document.defaultView?.addEventListener('resize', this.wake);
    }
    this.#documents = documents;
    this.#page.removeEventListener('visibilitychange', this.wake);
    if (documents.length > 0) this.#page.addEventListener('visibilitychange', this.wake);
  }

  /** Ends everything. */
  stop(): void {
    this.listen([]);
    this.#rest();
    cancelAnimationFrame(this.#request);
    this.#request = 0;
  }

  /** Looks at each of the next frames. */
  readonly wake = (): void => {
    this.#until = performance.now() + WATCH_MS;
    if (this.#request !== 0 || this.#documents.length === 0) return;
    this.#rest();
    this.#isFirst = true;
    this.#request = requestAnimationFrame(this.#tick);
  };

  readonly #onMove = (event: PointerEvent): void => {
    // Something is dragged, or was until now.
    if (event.buttons !== 0 || this.#pointers) this.wake();
    this.#pointers = event.buttons !== 0;
  };

  readonly #onLoad = ({ target }: Event): void => {
    if ((target as Partial<Element> | null)?.localName?.endsWith('frame') === true) this.#loaded();
  };

  readonly #tick = (now: number): void => {
    this.#request = 0;
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    if (this.#frame(isFirst)) this.#until = Math.max(this.#until, now + WATCH_MS);
    if (now > this.#until && this.#isAnimated()) this.#until = now + WATCH_MS;
    if (now <= this.#until) this.#request = requestAnimationFrame(this.#tick);
    else this.#watch();
  };

  /** Whether an animation runs on an element around one that is followed. */
  #isAnimated(): boolean {
    const targets = this.#documents
      .flatMap((document) => document.getAnimations())
      .flatMap(({ playState, effect }) =>
        playState === 'running' && effect !== null && 'target' in effect ? [effect.target as Element] : [],
      );
    return (
      targets.length > 0 && [...this.#watched()].some((element) => targets.some((target) => target?.contains(element)))
    );
  }

  #watch(): void {
    const { clientWidth, clientHeight } = this.#page.documentElement;
    this.#sizes = new ResizeObserver(afterFirst(this.wake));
    for (const element of new Set(this.#watched())) {
      this.#sizes.observe(element);
      const { left, top, right, bottom } = element.getBoundingClientRect();
      const rootMargin =
        element.ownerDocument === this.#page
          ? [top, clientWidth - right, clientHeight - bottom, left].map((edge) => `${-Math.floor(edge)}px`).join(' ')
          : '0px';
      const observer = new IntersectionObserver(afterFirst(this.wake), { rootMargin, threshold: THRESHOLDS });
      observer.observe(element);
      this.#places.push(observer);
    }
  }

  #rest(): void {
    for (const observer of this.#places) observer.disconnect();
    this.#places = [];
    this.#sizes?.disconnect();
  }
}

/** Calls a function from the second call on: the first report of an observer is of how it is now. */
function afterFirst(call: () => void): () => void {
  let isFirst = true;
  return () => {
    if (!isFirst) call();
    isFirst = false;
  };
}
