import { styleSheet } from './styles.ts';

const sheets = new Map<string, CSSStyleSheet>();

/** Adds a style sheet to the shadow root of an element, once: those of what is loaded by need. */
export function adopt(element: Element, text: string): void {
  const root = element.getRootNode() as ShadowRoot;
  const sheet = sheets.get(text) ?? styleSheet(text);
  sheets.set(text, sheet);
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
}
