/** The events of typing, to which pages bind their shortcuts. */
const KINDS = ['keydown', 'keypress', 'keyup', 'beforeinput', 'copy', 'cut', 'paste'] as const;

/** Types of `<input>` in which nothing is typed. */
const NOT_TYPED_IN = new Set(['button', 'checkbox', 'color', 'file', 'image', 'radio', 'range', 'reset', 'submit']);

/**
 * Keeps what is typed in the fields of a shadow root from the page. Outside of the root the target of an event is the
 * host, so a page that spares its own fields takes typing for its shortcuts. Events end at the root after the widget
 * has handled them. A page that listens in the capturing phase still sees them first.
 *
 * @param onEscape called with Escape in a field, which the host does not hear either
 */
export function keepTyping(root: ShadowRoot | HTMLElement, onEscape: (event: KeyboardEvent) => void): void {
  for (const kind of KINDS) {
    root.addEventListener(kind, (event) => {
      if (!isField(event.target)) return;
      event.stopPropagation();
      if (kind === 'keydown' && (event as KeyboardEvent).key === 'Escape') onEscape(event as KeyboardEvent);
    });
  }
}

/** Whether something is typed in an element. */
export function isField(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !NOT_TYPED_IN.has(target.type);
  return target instanceof HTMLTextAreaElement || (target instanceof HTMLElement && target.isContentEditable);
}

/**
 * Whether the key belongs to an input method, such as the Enter that confirms a word: Safari has ended the composition
 * by then.
 */
export function isOfInputMethod(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}

/**
 * Replaces a range of a field's text as if it were typed, so that undo takes it back and leaves what was there before.
 */
export function typeText(area: HTMLTextAreaElement, text: string, from: number, to: number): void {
  area.focus({ preventScroll: true });
  area.setSelectionRange(from, to);
  // Deprecated, and the only way that keeps the history of undo.
  if (!document.execCommand('insertText', false, text)) area.setRangeText(text, from, to, 'end');
}
