import { isField } from './typing.ts';

/** The events by which a page learns that the focus has left a dialog of its own, or is about to. */
const KINDS = ['focus', 'blur', 'focusin', 'focusout', 'pointerdown', 'mousedown', 'touchstart', 'click'] as const;

/** Some traps take the focus once more, after a timeout. */
const MAX_TRIES = 2;

/** A trap takes the focus back within this time, in milliseconds. */
const AT_ONCE_MS = 100;

/** The keys with which users leave a field themselves. */
const LEAVING = new Set(['Tab', 'Escape', 'Enter']);

/**
 * Keeps the focus in the widget where a page takes it back, as the focus traps of dialogs do, or keeps clicks from it.
 * From then on, until the user turns to the page, it does not see these events of the widget; they still reach the
 * widget. The focus is taken again at most twice after each click or key of the user.
 *
 * @param lost called when the page takes the focus even so: then nobody can write
 */
export function holdFocus(root: ShadowRoot | HTMLElement, host: HTMLElement, lost: () => void): void {
  let isHolding = false;
  let isLeaving = false;
  let tries = 0;
  let gainedAt = 0;

  const hold = (): void => {
    if (isHolding) return;
    isHolding = true;
    for (const kind of KINDS) window.addEventListener(kind, onEvent, true);
  };
  const release = (): void => {
    isHolding = false;
    for (const kind of KINDS) window.removeEventListener(kind, onEvent, true);
  };
  const onEvent = (event: Event): void => {
    if (event.composedPath().includes(host)) hide(event, host);
    else if ((event as FocusEvent).relatedTarget === host) event.stopImmediatePropagation();
    else if (event.type === 'pointerdown') release();
  };
  const onPress = (event: Event): void => {
    if (event.composedPath().includes(host)) return;
    isLeaving = true;
    window.removeEventListener('pointerdown', onPress, true);
  };
  const takeAgain = (element: HTMLElement): void => {
    const taker = document.activeElement;
    if (
      taker === null ||
      taker === document.body ||
      !document.hasFocus() ||
      !element.isConnected ||
      host.matches(':focus-within')
    )
      return;
    if (tries >= MAX_TRIES) return lost();
    tries += 1;
    hold();
    element.focus({ preventScroll: true });
  };

  root.addEventListener('focusin', () => {
    isLeaving = false;
    gainedAt = performance.now();
    window.addEventListener('pointerdown', onPress, true);
  });
  root.addEventListener('focusout', (event) => {
    const { target, relatedTarget } = event as FocusEvent;
    if (relatedTarget instanceof Node && root.contains(relatedTarget)) return;
    // A dialog that the page opens by itself may have the focus, unless one is writing.
    if (!isField(target) && performance.now() - gainedAt > AT_ONCE_MS) return;
    // A trap moves the focus while it handles this event.
    if (!isLeaving) queueMicrotask(() => takeAgain(target as HTMLElement));
    else if (isHolding) release();
  });
  root.addEventListener('keydown', (event) => {
    isLeaving = LEAVING.has((event as KeyboardEvent).key);
    tries = 0;
  });
  root.addEventListener('pointerdown', () => {
    tries = 0;
    window.addEventListener('mousedown', onMouseDown, { once: true });
  });
  // The widget itself prevents no `mousedown`: a page that does keeps the focus from what was clicked, and the click,
  // too.
  const onMouseDown = (event: MouseEvent): void => {
    const [target] = event.composedPath();
    if (!event.defaultPrevented || isHolding || !(target instanceof Element) || !root.contains(target)) return;
    hold();
    target.closest<HTMLElement>('textarea, input, button, [tabindex]')?.focus({ preventScroll: true });
  };
}

/** Ends an event of the widget before the page sees it, and gives the widget a copy that does not leave its root. */
function hide(event: Event, host: HTMLElement): void {
  event.stopImmediatePropagation();
  const [target] = event.composedPath();
  if (target === undefined || target === host) return;
  const init = new Proxy(event, {
    get: (from, name) => (name === 'composed' ? false : (Reflect.get(from, name, from) as unknown)),
  });
  const copy = new (event.constructor as typeof Event)(event.type, init);
  // What a click does, such as following a link, is done by the copy.
  if (!target.dispatchEvent(copy) || event.type === 'click') event.preventDefault();
}
