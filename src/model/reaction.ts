import * as Type from 'typebox';
import type { Static } from 'typebox';

/** A reaction, stored in its comment and sent in this form (docs/api.md, "Reactions"). */
export interface Reaction {
  readonly id: string;
  readonly reactionId: string;
  readonly commentId: string;
  readonly threadId: string;
  readonly userId: string;
  readonly emoji: string;
  readonly createdAt: string;
}

/** The body of an add-reaction request. */
export const ReactionCreateSchema = Type.Object({
  userId: Type.String({ description: 'The user who reacts; must be a known user.' }),
  emoji: Type.String({ description: 'One emoji or a `:shortcode:`, 1 to 64 UTF-8 bytes.' }),
});
export type ReactionCreate = Static<typeof ReactionCreateSchema>;
