type Child = Node | string;

/**
 * Creates an element. Names with a hyphen (`aria-…`, `data-…`) are set as attributes, all others as properties. Text
 * children become text nodes, so text from users is never parsed as markup.
 */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Record<string, unknown> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-')) created.setAttribute(name, String(value));
    else Object.assign(created, { [name]: value });
  }
  created.append(...children);
  return created;
}

/** Returns the element with this id. Throws if the page has none of this kind. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} #${id}`);
  return found;
}

/** Submits the field's form on Ctrl+Enter and Cmd+Enter. */
export function submitByKey(field: HTMLTextAreaElement): void {
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) field.form?.requestSubmit();
  });
}

/** A `<time>` element that shows an ISO time in the reader's locale and time zone. */
export function timeElement(iso: string): HTMLTimeElement {
  const at = new Date(iso);
  const sameDay = at.toDateString() === new Date().toDateString();
  const text = sameDay ? at.toLocaleTimeString([], { timeStyle: 'short' }) : at.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
  return element('time', { dateTime: iso, title: at.toLocaleString() }, text);
}
