/** What continues a word, so that a name before it is the beginning of another. */
const WORD = /^[\p{L}\p{N}\p{M}]/u;

/** The ids of the chosen users that a text still names, of the names by id. Where one name begins with another, the longer one is meant. */
export function mentionedIn({ text, mentions }: { readonly text: string; readonly mentions: Readonly<Record<string, string>> }): string[] {
  const names = new Set(Object.values(mentions).toSorted((one, other) => other.length - one.length));
  const named = new Set<string>();
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    for (const name of names) {
      if (name === '' || !text.startsWith(name, at + 1) || WORD.test(text.slice(at + 1 + name.length, at + 3 + name.length))) continue;
      named.add(name);
      break;
    }
  }
  return Object.entries(mentions).flatMap(([userId, name]) => (named.has(name) ? [userId] : []));
}
