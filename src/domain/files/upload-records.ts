import type { StoredFile } from '../../model/attachment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import { CollabError } from '../../model/errors.ts';
import { appendAuditRecord } from '../audit/audit.ts';
import type { Reader } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { filesOf } from '../records/partitions.ts';
import { scanRecords } from '../records/record.ts';
import { removeFile } from './attachments.ts';
import { findFile } from './find-file.ts';

/** An uploaded file as operators see it. */
export interface UploadView extends Omit<StoredFile['attachment'], 'url' | 'thumbnailUrl'> {
  readonly uploadedBy: string;
  /** Id of the comment that links it; null until one does. */
  readonly commentId: string | null;
  readonly sha256: string;
  readonly createdAt: string;
}

/**
 * The uploads of an environment by id, which begins with their time; only those that no comment links if `unlinked`.
 */
export async function* listUploads(
  ctx: Context,
  environment: Environment,
  unlinked: boolean,
): AsyncGenerator<UploadView> {
  for await (const { value } of scanRecords<StoredFile>(ctx.store, filesOf(environment.id))) {
    const upload = viewOf(value);
    if (!unlinked || upload.commentId === null) yield upload;
  }
}

/** One upload. Throws `file_not_found`. */
export async function getUpload(ctx: Context, environment: Environment, fileId: string): Promise<UploadView> {
  return viewOf(await requireUpload(ctx.store, environment, fileId));
}

/**
 * Deletes an upload that no comment links. Its bytes are deleted by the background worker, or by the next one. Throws
 * `file_not_found`, and `attachment_linked` for the file of a comment, which shows it.
 */
export async function deleteUpload(ctx: Context, environment: Environment, fileId: string): Promise<void> {
  await ctx.store.transact(async (tx) => {
    const { commentId } = await requireUpload(tx, environment, fileId);
    if (commentId !== null)
      throw new CollabError(
        'attachment_linked',
        `The file ${fileId} belongs to the comment ${commentId}, which shows it. Delete the comment, or edit its attachments`,
      );
    await removeFile(tx, environment.id, fileId);
    await appendAuditRecord(ctx, tx, environment.id, {
      action: 'upload.delete',
      target: { kind: 'upload', id: fileId },
    });
  });
}

async function requireUpload(
  reader: Pick<Reader, 'get'>,
  environment: Environment,
  fileId: string,
): Promise<StoredFile> {
  const file = await findFile(reader, environment.id, fileId);
  if (file === undefined)
    throw new CollabError('file_not_found', `There is no upload ${fileId} in ${environment.slug}`);
  return file;
}

function viewOf({ attachment, uploadedBy, commentId, sha256, createdAt }: StoredFile): UploadView {
  const { url: _url, thumbnailUrl: _thumbnailUrl, ...about } = attachment;
  return { ...about, uploadedBy, commentId, sha256, createdAt };
}
