const MAX_BYTES = 255;
/** Control characters, and characters that change the text direction or end a line. */
const INVISIBLE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
/** Extensions of up to so many bytes are preserved when a name is truncated. */
const MAX_EXTENSION_BYTES = 16;

/**
 * The name of an upload, made safe as a file name and in a header: the last part of a path, without control and
 * direction characters, at most 255 bytes of UTF-8, with its extension preserved. `file` with an extension if nothing
 * is left.
 */
export function safeFilename(name: string, mimeType: string): string {
  const bare = name
    .normalize('NFC')
    .replace(/^.*[/\\]/s, '')
    .replace(INVISIBLE, '')
    .replace(/^[\s.]+/u, '')
    // Not `\s+$`, which takes quadratic time.
    .trimEnd();
  return bare === '' ? `file.${mimeType.slice(mimeType.indexOf('/') + 1)}` : truncated(bare);
}

/** Whether a name has the properties that `safeFilename` guarantees. */
export function isSafeFilename(name: string): boolean {
  return (
    name !== '' &&
    Buffer.byteLength(name) <= MAX_BYTES &&
    !/[/\\]/.test(name) &&
    name.search(INVISIBLE) < 0 &&
    name.isWellFormed()
  );
}

function truncated(name: string): string {
  if (Buffer.byteLength(name) <= MAX_BYTES) return name;
  const dot = name.lastIndexOf('.');
  const extension = dot > 0 && Buffer.byteLength(name.slice(dot)) <= MAX_EXTENSION_BYTES ? name.slice(dot) : '';
  let remaining = MAX_BYTES - Buffer.byteLength(extension);
  let stem = '';
  for (const character of name) {
    remaining -= Buffer.byteLength(character);
    if (remaining < 0) break;
    stem += character;
  }
  return stem + extension;
}
