/**
 * A text in the form in which the HTTP core is given it: ASCII as it is, anything else as its UTF-8 bytes. Some builds of
 * the core send the characters U+0080 to U+00FF of a string as one byte each, which is no UTF-8; bytes are sent as they are
 * by every build. Strings stay strings where they may, because the core copies them faster (docs/decisions/0013).
 *
 * Call it once per text, not once per receiver.
 */
export function wireText(text: string): string | Uint8Array {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text);
}
