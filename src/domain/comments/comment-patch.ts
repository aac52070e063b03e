import { isDeepStrictEqual } from 'node:util';
import type { Comment, CommentPatch } from '../../model/comment.ts';
import type { Limits } from '../../model/environments/limits.ts';
import { checkBody } from '../input/bounds.ts';

/** Whether a patch changes the metadata of a comment alone, and nothing that readers see as its text. */
export function isMetadataOnly({ body, mentions, attachmentIds }: CommentPatch): boolean {
  return body === undefined && mentions === undefined && attachmentIds === undefined;
}

/**
 * A comment after a valid patch at the time `at`, which becomes `editedAt` unless the metadata alone change. `linked`
 * is the comment with the attachments of the patch. Throws `invalid_request` for an empty text without attachments.
 */
export function patchComment(linked: Comment, patch: CommentPatch, at: string, limits: Limits): Comment {
  const { body = linked.body, mentions = linked.mentions, metadata = linked.metadata } = patch;
  if (isMetadataOnly(patch)) return { ...linked, metadata };
  checkBody(body, limits, linked.attachments.length);
  return { ...linked, body, mentions, metadata, editedAt: at };
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
