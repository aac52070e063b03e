import { CollabError, invalidField } from '../../model/errors.ts';
import type { Attachment, StoredFile } from '../../model/attachment.ts';
import type { Comment } from '../../model/comment.ts';
import type { Limits } from '../../model/environments/limits.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Actor } from '../access/actor.ts';
import { putFileJob } from './file-jobs.ts';
import { findFile } from './find-file.ts';
import { filesOf, unlinkedOf } from '../records/partitions.ts';
import { putRecord } from '../records/record.ts';
import { countUsage } from '../quotas/usage.ts';

/** The ids without duplicates, in their order. Throws `invalid_request` if there are more than a comment may have. */
export function checkAttachmentIds(ids: readonly string[], limits: Limits): readonly string[] {
  if (ids.length > limits.attachments)
    throw invalidField('attachmentIds', `must hold at most ${limits.attachments} ids`, ids.length);
  return [...new Set(ids)];
}

/**
 * Links uploads to a comment in the transaction that writes it, and returns them as attachments. Users can link only
 * their own uploads and those that the comment has already. Throws `unknown_attachment`, `attachment_linked`.
 *
 * @param held whether the comment is held, so that only its author and moderators may get the files that it links first
 */
async function linkAttachments(
  tx: Transaction,
  actor: Actor,
  ids: readonly string[],
  commentId: string,
  held = false,
): Promise<Attachment[]> {
  const environmentId = actor.environment.id;
  const linked: Attachment[] = [];
  for (const id of ids) {
    const file = await findFile(tx, environmentId, id);
    const isMine = actor.kind === 'backend' || file?.uploadedBy === actor.userId;
    if (file === undefined || (!isMine && file.commentId !== commentId)) {
      throw new CollabError(
        'unknown_attachment',
        `attachmentIds holds ${JSON.stringify(id.slice(0, 64))}, which is not an upload ` +
          `${actor.kind === 'user' ? 'of yours' : 'of this environment'}`,
      );
    }
    if (file.commentId !== null && file.commentId !== commentId)
      throw new CollabError('attachment_linked', `The attachment ${id} is linked to another comment`);
    if (file.commentId === null || (file.held === true && !held)) {
      putRecord(tx, filesOf(environmentId), id, { ...file, commentId, held: held || undefined } as StoredFile);
      tx.delete(unlinkedOf(environmentId), id);
    }
    linked.push(file.attachment);
  }
  return linked;
}

/**
 * A comment with these uploads linked in place of its attachments, in the transaction that writes it; the same comment
 * if `ids` is undefined. Files that it no longer links are removed. Throws as `linkAttachments`.
 */
export async function withAttachments(
  tx: Transaction,
  actor: Actor,
  comment: Comment,
  ids: readonly string[] | undefined,
): Promise<Comment> {
  if (ids === undefined) return comment;
  const attachments = await linkAttachments(tx, actor, ids, comment.id);
  const removed = comment.attachments.filter(({ id }) => !ids.includes(id));
  await removeAttachments(tx, actor.environment.id, removed);
  return { ...comment, attachments };
}

/** As `withAttachments`, for a comment or an edit that is held: the files of the visible comment stay. */
export async function withHeldAttachments(
  tx: Transaction,
  actor: Actor,
  comment: Comment,
  ids: readonly string[] | undefined,
): Promise<Comment> {
  return ids === undefined
    ? comment
    : { ...comment, attachments: await linkAttachments(tx, actor, ids, comment.id, true) };
}

/**
 * Makes the files of a held comment, or of a held edit, available to all users, in the transaction that approves it.
 */
export async function releaseAttachments(
  tx: Transaction,
  environmentId: string,
  attachments: readonly Attachment[],
): Promise<void> {
  for (const { id } of attachments) {
    const file = await findFile(tx, environmentId, id);
    if (file?.held !== true) continue;
    const { held: _, ...released } = file;
    putRecord(tx, filesOf(environmentId), id, released);
  }
}

/**
 * Removes the files that only a held comment or a held edit links, in a transaction, except those with an id in `kept`.
 */
export async function removeHeldAttachments(
  tx: Transaction,
  environmentId: string,
  attachments: readonly Attachment[],
  kept: readonly string[] = [],
): Promise<void> {
  for (const { id } of attachments) {
    if (!kept.includes(id) && (await findFile(tx, environmentId, id))?.held === true)
      await removeFile(tx, environmentId, id);
  }
}

/** Removes the records of attached files in a transaction, and leaves jobs that remove their bytes. */
export async function removeAttachments(
  tx: Transaction,
  environmentId: string,
  attachments: readonly Attachment[],
): Promise<void> {
  for (const { id } of attachments) await removeFile(tx, environmentId, id);
}

/** Removes the record of one file, linked or not, in a transaction, and leaves a job that removes its bytes. */
export async function removeFile(tx: Transaction, environmentId: string, fileId: string): Promise<void> {
  const file = await findFile(tx, environmentId, fileId);
  if (file !== undefined) countUsage(tx, environmentId, file.uploadedBy, 'uploadBytes', -file.attachment.sizeBytes);
  tx.delete(filesOf(environmentId), fileId);
  tx.delete(unlinkedOf(environmentId), fileId);
  putFileJob(tx, 'remove', environmentId, fileId);
}
