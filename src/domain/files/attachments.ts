import { CollabError } from '../../model/errors.ts';
import type { Attachment, StoredFile } from '../../model/attachment.ts';
import type { Comment } from '../../model/comment.ts';
import type { Limits } from '../../model/limits.ts';
import type { Transaction } from '../../ports/store.ts';
import type { Actor } from '../access/actor.ts';
import { putFileJob } from './file-jobs.ts';
import { filesOf, unlinkedOf } from '../records/partitions.ts';
import { countUsage } from '../quotas/usage.ts';

/** The ids without repetition, in their order. Throws `invalid_request` when there are more than a comment may have. */
export function checkAttachmentIds(ids: readonly string[], limits: Limits): readonly string[] {
  if (ids.length > limits.attachments) throw new CollabError('invalid_request', `attachmentIds must hold at most ${limits.attachments} ids`);
  return [...new Set(ids)];
}

/**
 * Links uploads to a comment, inside the transaction that writes it, and gives what the comment shows of them. Users
 * link only what they uploaded themselves, unless the comment has it already.
 * Throws `unknown_attachment`, `attachment_linked`.
 */
async function linkAttachments(tx: Transaction, actor: Actor, ids: readonly string[], commentId: string): Promise<Attachment[]> {
  const environmentId = actor.environment.id;
  const linked: Attachment[] = [];
  for (const id of ids) {
    const file = await findFile(tx, environmentId, id);
    const isMine = actor.kind === 'backend' || file?.uploadedBy === actor.userId;
    if (file === null || (!isMine && file.commentId !== commentId)) {
      throw new CollabError('unknown_attachment', `attachmentIds holds ${JSON.stringify(id.slice(0, 64))}, which is no upload ${actor.kind === 'user' ? 'of yours' : 'of this environment'}`);
    }
    if (file.commentId !== null && file.commentId !== commentId) throw new CollabError('attachment_linked', `The attachment ${id} is linked to another comment`);
    if (file.commentId === null) {
      tx.put(filesOf(environmentId), id, JSON.stringify({ ...file, commentId } satisfies StoredFile));
      tx.delete(unlinkedOf(environmentId), id);
    }
    linked.push(file.attachment);
  }
  return linked;
}

/** A comment with these uploads linked instead of those that it has; files that it loses are removed. As `linkAttachments`. */
export async function withAttachments(tx: Transaction, actor: Actor, comment: Comment, ids: readonly string[] | undefined): Promise<Comment> {
  if (ids === undefined) return comment;
  const attachments = await linkAttachments(tx, actor, ids, comment.id);
  const lost = comment.attachments.filter(({ id }) => !ids.includes(id));
  await removeAttachments(tx, actor.environment.id, lost);
  return { ...comment, attachments };
}

/** Removes the files of a comment that loses them, inside the transaction: nobody finds them any more, and their bytes follow. */
export async function removeAttachments(tx: Transaction, environmentId: string, attachments: readonly Attachment[]): Promise<void> {
  for (const { id } of attachments) await removeFile(tx, environmentId, id);
}

/** Removes one file, linked or not, inside a transaction. */
export async function removeFile(tx: Transaction, environmentId: string, fileId: string): Promise<void> {
  const file = await findFile(tx, environmentId, fileId);
  if (file !== null) countUsage(tx, environmentId, file.uploadedBy, 'uploadBytes', -file.attachment.sizeBytes);
  tx.delete(filesOf(environmentId), fileId);
  tx.delete(unlinkedOf(environmentId), fileId);
  putFileJob(tx, 'remove', environmentId, fileId);
}

async function findFile(tx: Transaction, environmentId: string, id: string): Promise<StoredFile | null> {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) return null;
  const stored = await tx.get(filesOf(environmentId), id);
  return stored === undefined ? null : (JSON.parse(stored) as StoredFile);
}
