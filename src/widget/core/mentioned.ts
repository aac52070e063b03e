import { nameAt } from '../text/name-at.ts';

/** Where a chosen user is named in a text: the index of the `@`. */
export interface MentionPlace {
  readonly userId: string;
  readonly at: number;
}

/** A text, with the names of the users that were chosen in it, by id, and where. */
export interface Mentioning {
  readonly text: string;
  readonly mentions: Readonly<Record<string, string>>;
  readonly places?: readonly MentionPlace[];
}

/**
 * The ids of the chosen users that a text still names. Where one name begins with another, the longer one is meant; of
 * several users with one name, those that were chosen at the places where it stands, and for a place where nobody was,
 * all of them.
 */
export function mentionedIn({ text, mentions, places = [] }: Mentioning): string[] {
  const names = new Set(Object.values(mentions));
  const chosen = new Set<string>();
  const named = new Set<string>();
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    const name = nameAt(text, at, names);
    const place = places.find((each) => each.at === at && mentions[each.userId] === name);
    if (place !== undefined) chosen.add(place.userId);
    else if (name !== null) named.add(name);
  }
  return Object.entries(mentions).flatMap(([userId, name]) => (chosen.has(userId) || named.has(name) ? [userId] : []));
}

/**
 * The content of a field after a user was chosen at a place of its text. Others of that name who are no longer in it
 * are not meant.
 */
export function choose<T extends Mentioning>(content: T, userId: string, name: string, at: number): T {
  const { text, mentions, places = [] } = content;
  const live = places.filter((place) => place.at !== at && text.startsWith(`@${mentions[place.userId]}`, place.at));
  const others = Object.entries(mentions).filter(
    ([id, other]) => other !== name || live.some((place) => place.userId === id),
  );
  return { ...content, mentions: { ...Object.fromEntries(others), [userId]: name }, places: [...live, { userId, at }] };
}

/**
 * The places after an edit of the text: they move with what is behind it, and one in what was replaced is gone.
 *
 * @param caret where the cursor is after the edit, which tells equal texts apart
 */
export function movePlaces(
  places: readonly MentionPlace[],
  before: string,
  after: string,
  caret: number,
): readonly MentionPlace[] {
  if (places.length === 0 || before === after) return places;
  const behind = after.slice(caret);
  const most = Math.min(before.length, after.length);
  let end = before.endsWith(behind) ? behind.length : 0;
  let start = 0;
  while (start < most - end && before[start] === after[start]) start += 1;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return places.flatMap((place) => {
    if (place.at < start) return [place];
    return place.at < before.length - end ? [] : [{ ...place, at: place.at + after.length - before.length }];
  });
}
