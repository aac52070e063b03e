import { createHash } from 'node:crypto';
import * as Type from 'typebox';
import type { Static } from 'typebox';
import { LinkTemplateSchema } from '../shared/comment-link.ts';

const TargetSchema = Type.Object({
  url: Type.String({
    pattern: '^https?://',
    maxLength: 2_048,
    description: 'The URL of an incoming webhook of Slack, Mattermost or Discord.',
  }),
  rooms: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      description: 'Ids of rooms, or beginnings of ids followed by `*`. Without it, all rooms.',
    }),
  ),
  format: Type.Union([Type.Literal('slack'), Type.Literal('discord')], {
    default: 'slack',
    description: '`slack`, which Mattermost takes too, or `discord`.',
  }),
});

/** The configuration of the plugin in an environment. */
export const ConfigSchema = Type.Object({
  targets: Type.Array(TargetSchema, {
    default: [],
    description: 'Where messages are posted. A message is posted to every target that has its room.',
  }),
  post: Type.Union([Type.Literal('comments'), Type.Literal('notifications')], {
    default: 'comments',
    description:
      '`comments` posts every new thread and comment; `notifications` only those that notify a user with the channel `slack` enabled.',
  }),
  linkTemplate: LinkTemplateSchema,
});
export type Config = Static<typeof ConfigSchema>;
export type Target = Static<typeof TargetSchema>;

/** Names a target in jobs, without its URL, which is a secret. */
export function keyOf({ url }: Target): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 32);
}

/** The targets that messages about a room are posted to. */
export function targetsOf({ targets }: Config, roomId: string): Target[] {
  return targets.filter(
    ({ rooms }) =>
      rooms?.some((room) => (room.endsWith('*') ? roomId.startsWith(room.slice(0, -1)) : roomId === room)) ?? true,
  );
}
