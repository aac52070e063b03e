import { ID_PATTERN } from '../../model/id.ts';
import type { StoredFile } from '../../model/attachment.ts';
import type { Environment } from '../../model/environment.ts';
import { CollabError } from '../../model/errors.ts';
import { appendAuditRecord } from '../audit/audit.ts';
import type { Context } from '../context.ts';
import { filesOf } from '../records/partitions.ts';
import { removeFile } from './attachments.ts';

const SLICE = 500;

/** An uploaded file as operators see it. */
export interface UploadView extends Omit<StoredFile['attachment'], 'url' | 'thumbnailUrl'> {
  readonly uploadedBy: string;
  /** Id of the comment that links it; null until one does. */
  readonly commentId: string | null;
  readonly sha256: string;
  readonly createdAt: string;
}

/** The uploads of an environment by id, which begins with their time; only those that no comment links if `unlinked`. */
export async function* listUploads(ctx: Context, environment: Environment, unlinked: boolean): AsyncGenerator<UploadView> {
  for (let after: string | undefined; ; ) {
    const slice = await ctx.store.range(filesOf(environment.id), { after, limit: SLICE });
    for (const { value } of slice) {
      const upload = viewOf(JSON.parse(value) as StoredFile);
      if (!unlinked || upload.commentId === null) yield upload;
    }
    if (slice.length < SLICE) return;
    after = slice.at(-1)?.key;
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
    if (commentId !== null) throw new CollabError('attachment_linked', `The file ${fileId} belongs to the comment ${commentId}, which shows it. Delete the comment, or edit its attachments`);
    await removeFile(tx, environment.id, fileId);
    await appendAuditRecord(ctx, tx, environment.id, { action: 'upload.delete', target: { kind: 'upload', id: fileId } });
  });
}

async function requireUpload(store: { get(partition: string, key: string): Promise<string | undefined> }, environment: Environment, fileId: string): Promise<StoredFile> {
  const stored = ID_PATTERN.test(fileId) ? await store.get(filesOf(environment.id), fileId) : undefined;
  if (stored === undefined) throw new CollabError('file_not_found', `There is no upload ${fileId} in ${environment.slug}`);
  return JSON.parse(stored) as StoredFile;
}

function viewOf({ attachment, uploadedBy, commentId, sha256, createdAt }: StoredFile): UploadView {
  const { url: _url, thumbnailUrl: _thumbnailUrl, ...about } = attachment;
  return { ...about, uploadedBy, commentId, sha256, createdAt };
}
