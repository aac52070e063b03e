import { nameAt } from '../text/name-at.ts';

/** The ids of the chosen users that a text still names, of the names by id. Where one name begins with another, the longer one is meant. */
export function mentionedIn({ text, mentions }: { readonly text: string; readonly mentions: Readonly<Record<string, string>> }): string[] {
  const names = new Set(Object.values(mentions));
  const named = new Set<string>();
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    const name = nameAt(text, at, names);
    if (name !== null) named.add(name);
  }
  return Object.entries(mentions).flatMap(([userId, name]) => (named.has(name) ? [userId] : []));
}
