/**
 * The parent of an element; of the uppermost one in a shadow root its host, in a frame the frame. Null at the end, and
 * beyond it.
 */
export function parentOf(element: Element): Element | null {
  return element.parentElement ?? hostOf(element.getRootNode());
}

/**
 * The element that shows a root: the host of a shadow root, the frame of a document. Null if there is none that can be
 * seen.
 */
export function hostOf(root: Node): Element | null {
  // Not by instanceof: each frame has classes of its own. Nor by `host` alone: a link has one, a text.
  if (root.nodeType === Node.DOCUMENT_FRAGMENT_NODE) return (root as Partial<ShadowRoot>).host ?? null;
  try {
    return (root as Document).defaultView?.frameElement ?? null;
  } catch {
    return null;
  }
}

/** What an element shows within: its open shadow root, or its document if it is a frame of the same origin. */
export function shownBy(element: Element): Document | ShadowRoot | null {
  if (element.shadowRoot !== null) return element.shadowRoot;
  try {
    return (element as HTMLIFrameElement).contentDocument ?? null;
  } catch {
    return null;
  }
}

/** At most this many roots are searched, and as many levels of them. */
const MAX_ROOTS = 200;

/**
 * A document with all roots that are shown in it, open shadow roots and frames of the same origin, except that of
 * `apart`.
 */
export function rootsOf(document: Document, apart: Element | null): (Document | ShadowRoot)[] {
  const found: (Document | ShadowRoot)[] = [document];
  for (const root of found) {
    if (found.length >= MAX_ROOTS) break;
    for (const element of root.querySelectorAll('*')) {
      if (!element.localName.includes('-') && element.shadowRoot === null && !element.localName.endsWith('frame'))
        continue;
      const inner = element === apart ? null : shownBy(element);
      if (inner !== null && inner.firstChild !== null && !found.includes(inner)) found.push(inner);
    }
  }
  return found.slice(0, MAX_ROOTS);
}

/** Whether a node is in the page: in its document, and that in all frames around it. */
export function isInPage(node: Node, page: Document): boolean {
  if (node.ownerDocument === page) return node.isConnected;
  for (let at = node, depth = 0; depth < MAX_ROOTS; depth += 1) {
    if (!at.isConnected) return false;
    const document = at.ownerDocument ?? (at as Document);
    if (document === page) return true;
    const frame = hostOf(document);
    if (frame === null || shownBy(frame) !== document) return false;
    at = frame;
  }
  return false;
}
