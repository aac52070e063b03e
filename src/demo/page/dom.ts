type Child = Node | string;

/**
 * A new element. Properties are set as they are, `aria-…` and `data-…` as attributes; text children become text nodes,
 * so nothing that a user wrote is ever read as markup.
 */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Record<string, unknown> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-')) made.setAttribute(name, String(value));
    else Object.assign(made, { [name]: value });
  }
  made.append(...children);
  return made;
}

/** The element of the page that has this id; the page is written so that it exists and is of that kind. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} #${id}`);
  return found;
}

/** Ctrl+Enter and Cmd+Enter in a text field send its form. */
export function submitByKey(field: HTMLTextAreaElement): void {
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) field.form?.requestSubmit();
  });
}

/** When something was written, in the reader's own way of writing times. */
export function timeElement(iso: string): HTMLTimeElement {
  const at = new Date(iso);
  const sameDay = at.toDateString() === new Date().toDateString();
  const text = sameDay ? at.toLocaleTimeString([], { timeStyle: 'short' }) : at.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
  return element('time', { dateTime: iso, title: at.toLocaleString() }, text);
}
