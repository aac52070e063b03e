import * as Type from 'typebox';
import type { Static } from 'typebox';
import { type Attachment, attachmentIds } from './attachment.ts';
import type { Reaction } from './reaction.ts';
import { ActsForSchema, ClientIdSchema } from './thread.ts';
import { type Metadata, MetadataSchema } from './metadata.ts';

/** A comment, stored and sent in this form. */
export interface Comment {
  readonly id: string;
  readonly threadId: string;
  readonly userId: string;
  readonly body: string;
  readonly mentions: readonly string[];
  readonly attachments: readonly Attachment[];
  readonly reactions: readonly Reaction[];
  readonly metadata: Metadata;
  readonly createdAt: string;
  readonly editedAt: string | null;
  /** Only in what its author sees, never stored: the comment, or the edit that is shown, waits for a moderator. */
  readonly status?: 'held';
  /** With a held edit: the comment as everybody else sees it. Absent for a comment that was never published. */
  readonly published?: Comment;
}

/** The body of a create-comment request. */
export const CommentCreateSchema = Type.Object({
  id: Type.Optional(ClientIdSchema),
  userId: Type.String({ description: 'Author; must be a known user.' }),
  body: Type.String({ description: 'Text, 1 to 10 000 characters; may be empty with an attachment.' }),
  mentions: Type.Optional(Type.Array(Type.String(), { description: 'User ids to mention, at most 50.' })),
  attachmentIds: attachmentIds('Uploads to link, at most 10.'),
  metadata: Type.Optional(MetadataSchema),
});
export type CommentCreate = Static<typeof CommentCreateSchema>;

/** The body of an edit-comment request. */
export const CommentPatchSchema = Type.Object({
  userId: ActsForSchema,
  body: Type.Optional(
    Type.String({
      description:
        'The new text, 1 to 10 000 characters; may be empty with an attachment. Required, unless `metadata` alone is changed.',
    }),
  ),
  mentions: Type.Optional(Type.Array(Type.String(), { description: 'Replaces the mentions; absent leaves them.' })),
  attachmentIds: attachmentIds('Replaces the attachments; absent leaves them, files left out are removed.'),
  metadata: Type.Optional(MetadataSchema),
});
export type CommentPatch = Static<typeof CommentPatchSchema>;
