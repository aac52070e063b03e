import { unsafeCSS } from 'lit';
import page from './page.css';
import tokens from './tokens.css';

/** The style sheets of what is always there. The build reads them as minified text. */
export const styles = [tokens, page].map((sheet) => unsafeCSS(sheet));

/** A style sheet of a text, for what is loaded later. */
export function styleSheet(text: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return sheet;
}
