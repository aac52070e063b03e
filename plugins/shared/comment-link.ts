import * as Type from 'typebox';

/** The target of a link. */
export interface Place {
  readonly roomId: string;
  readonly threadId: string;
  readonly commentId: string;
}

/** The option that makes links of places. */
export const LinkTemplateSchema = Type.Optional(
  Type.String({
    pattern: '^https?://',
    maxLength: 2_048,
    description:
      'The page of a comment, such as `https://app.example.com/{roomId}#thread={threadId}`, with ' +
      '`{roomId}`, `{threadId}` and `{commentId}`, which are percent-encoded. Without it a room id that is ' +
      'an http or https URL is the link.',
  }),
);

/**
 * The page of a comment, by the template; without one, the room id if it is an http or https URL, and null if it is
 * not.
 */
export function commentLink(template: string | undefined, place: Place): string | null {
  const text =
    template?.replaceAll(/\{(roomId|threadId|commentId)\}/g, (_, name: keyof Place) =>
      encodeURIComponent(place[name]),
    ) ?? place.roomId;
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return null;
  return new URL(text).href;
}
