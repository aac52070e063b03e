const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Whether JSON text nests arrays and objects more than `limit` levels deep; `{}` and `[]` have one level. Reads the
 * text once, does not recurse and allocates nothing. The result for text that is not JSON is meaningless, but as cheap.
 */
export function isDeeperThan(text: string, limit: number): boolean {
  if (hasAtMost(limit, text)) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > limit) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
    }
  }
  return false;
}

/**
 * Whether a text has at most `limit` opening brackets, in strings or outside. Most have a few, and need not be read in
 * detail.
 */
function hasAtMost(limit: number, text: string): boolean {
  let count = 0;
  for (const bracket of '{[') {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1))
      if (++count > limit) return false;
  }
  return true;
}

/** The index of the closing quote of the string that begins at `start`; the length of the text if it has none. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = end;
    while (text.charCodeAt(escapes - 1) === BACKSLASH) escapes--;
    if ((end - escapes) % 2 === 0) return end;
  }
  return text.length;
}
