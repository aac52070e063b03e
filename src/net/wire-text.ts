/**
 * Converts a text to the form in which it is passed to the core: ASCII stays a string, anything else becomes UTF-8
 * bytes. Some builds of the core send the characters U+0080 to U+00FF of a string as one byte each, which is not UTF-8;
 * every build sends bytes unchanged. ASCII stays a string because the core copies strings faster (docs/decisions/0013).
 *
 * Call it once per text, not once per receiver.
 */
export function wireText(text: string): string | Uint8Array {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text);
}
