import { isDeepStrictEqual } from 'node:util';
import type { Comment, CommentPatch } from '../../model/comment.ts';
import type { Limits } from '../../model/environments/limits.ts';
import type { DraftComment } from '../../model/filter.ts';
import { checkAttachmentIds } from '../files/attachments.ts';
import { checkBody, checkMentions, checkMetadata } from '../input/bounds.ts';

/** Whether a patch changes the metadata of a comment alone, and nothing that readers see as its text. */
export function isMetadataOnly({ body, mentions, attachmentIds }: CommentPatch): boolean {
  return body === undefined && mentions === undefined && attachmentIds === undefined;
}

/**
 * The patch of an edit, without mentions and attachments that it names twice. Throws `invalid_request` for a field out
 * of its bounds.
 */
export function checkPatch(patch: CommentPatch, limits: Limits): CommentPatch {
  const attachmentIds = patch.attachmentIds === undefined ? undefined : checkAttachmentIds(patch.attachmentIds, limits);
  // Unless the attachments are given too, an empty text can be judged only once the comment is read: assume that it has
  // one.
  if (patch.body !== undefined) checkBody(patch.body, limits, attachmentIds === undefined ? 1 : attachmentIds.length);
  const mentions = patch.mentions === undefined ? undefined : checkMentions(patch.mentions, limits);
  if (patch.metadata !== undefined) checkMetadata(patch.metadata, limits);
  return {
    ...patch,
    ...(mentions === undefined ? {} : { mentions: [...mentions] }),
    ...(attachmentIds === undefined ? {} : { attachmentIds: [...attachmentIds] }),
  };
}

/** The fields of a comment, those of a patch in place of its own. */
function merged(
  { body, mentions, metadata }: Comment,
  patch: CommentPatch,
): Pick<Comment, 'body' | 'mentions' | 'metadata'> {
  return {
    body: patch.body ?? body,
    mentions: patch.mentions ?? mentions,
    metadata: patch.metadata ?? metadata,
  };
}

/** What filters see of a comment, with a patch if there is one. */
export function draftOf(comment: Comment, patch: CommentPatch = {}): DraftComment {
  const attachmentIds = patch.attachmentIds ?? comment.attachments.map(({ id }) => id);
  return { userId: comment.userId, ...merged(comment, patch), attachmentIds };
}

/**
 * A comment after a valid patch at the time `at`, which becomes `editedAt` unless the metadata alone change. `linked`
 * is the comment with the attachments of the patch. Throws `invalid_request` for an empty text without attachments.
 */
export function patchComment(linked: Comment, patch: CommentPatch, at: string, limits: Limits): Comment {
  const fields = merged(linked, patch);
  if (isMetadataOnly(patch)) return { ...linked, metadata: fields.metadata };
  checkBody(fields.body, limits, linked.attachments.length);
  return { ...linked, ...fields, editedAt: at };
}

/** The patch that gives a comment the content of another version of it, whose attachments are linked. */
export function patchTo(version: Comment, current: Comment): CommentPatch {
  const { body, mentions, metadata } = version;
  return isSameContent({ ...version, metadata: current.metadata }, current)
    ? { metadata }
    : { body, mentions: [...mentions], metadata };
}

/** Whether two versions of a comment say the same. */
export function isSameContent(one: Comment, other: Comment): boolean {
  const contentOf = ({ body, mentions, metadata, attachments }: Comment): unknown[] => [
    body,
    mentions,
    metadata,
    attachments.map(({ id }) => id),
  ];
  return isDeepStrictEqual(contentOf(one), contentOf(other));
}
