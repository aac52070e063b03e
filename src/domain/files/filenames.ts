const MAX_BYTES = 255;
/** Control characters, and those that change the direction of a text or end its line. */
const INVISIBLE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
/** Endings up to here survive when a name is cut. */
const MAX_EXTENSION_BYTES = 16;

/**
 * The name of an upload, harmless as a name of a file and in a header: the last part of a path, without control and
 * direction characters, at most 255 bytes of UTF-8, its ending kept. `file` and an ending when nothing is left.
 */
export function safeFilename(name: string, mimeType: string): string {
  const bare = name
    .normalize('NFC')
    .replace(/^.*[/\\]/s, '')
    .replace(INVISIBLE, '')
    .replace(/^[\s.]+|\s+$/gu, '');
  return bare === '' ? `file.${mimeType.slice(mimeType.indexOf('/') + 1)}` : truncated(bare);
}

/** Whether a name has what `safeFilename` promises. */
export function isSafeFilename(name: string): boolean {
  return name !== '' && Buffer.byteLength(name) <= MAX_BYTES && !/[/\\]/.test(name) && name.search(INVISIBLE) < 0 && name.isWellFormed();
}

function truncated(name: string): string {
  if (Buffer.byteLength(name) <= MAX_BYTES) return name;
  const dot = name.lastIndexOf('.');
  const ending = dot > 0 && Buffer.byteLength(name.slice(dot)) <= MAX_EXTENSION_BYTES ? name.slice(dot) : '';
  let room = MAX_BYTES - Buffer.byteLength(ending);
  let stem = '';
  for (const letter of name) {
    room -= Buffer.byteLength(letter);
    if (room < 0) break;
    stem += letter;
  }
  return stem + ending;
}
