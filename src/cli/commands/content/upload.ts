import type { Command } from 'commander';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { deleteUpload, getUpload, listUploads, type UploadView } from '../../../domain/files/upload-records.ts';
import { addCommand, addGroup } from '../../command.ts';
import { integerOption } from '../../option-values.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { type Listed, limitHelp, MAX_LISTED, moreText } from '../../shared/list-items.ts';
import { withStore } from '../../shared/open-store.ts';
import { keyValues, printResult, table } from '../../terminal/output.ts';
import { bytesText } from '../../terminal/progress.ts';
import { confirmDestruction } from '../../terminal/prompt.ts';
import { addUploadTransfers } from './upload-transfer.ts';

/** Adds `upload list|show|create|fetch|delete`. */
export function register(program: Command): void {
  const upload = addGroup(program, 'upload', 'Uploads: the files of comments, and those that no comment links yet.');
  const ENV = 'Environment of the upload.';

  addCommand(upload, 'list', {
    summary: 'List the uploads, oldest first.',
    examples: ['collab upload list --env default', 'collab upload list --env default --unlinked --json'],
  })
    .requiredOption('--env <slug>', 'Environment of the uploads.')
    .option('--unlinked', 'Only those that no comment links, which are deleted after 24 hours.')
    .option('--limit <n>', limitHelp('uploads'), '100')
    .action(list);

  addCommand(upload, 'show <id>', {
    summary: 'Show an upload and the comment that links it.',
    examples: ['collab upload show file_1m824gecgs4y1gdw90dr --env default'],
  })
    .requiredOption('--env <slug>', ENV)
    .action(show);

  addUploadTransfers(upload);

  addCommand(upload, 'delete <id>', {
    summary: 'Delete an upload that no comment links.',
    details: 'Asks first. This cannot be undone. The file of a comment is deleted with the comment.',
    examples: ['collab upload delete file_1m824gecgs4y1gdw90dr --env default --yes'],
  })
    .requiredOption('--env <slug>', ENV)
    .option('--yes', 'Do not ask.')
    .action(remove);
}

async function list(
  { env, unlinked, limit }: { env: string; unlinked?: true; limit: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const most = integerOption('limit', limit, 1, MAX_LISTED);
  const found = await withStore(at, async (ctx): Promise<Listed<UploadView>> => {
    const items: UploadView[] = [];
    for await (const upload of listUploads(ctx, await findEnvironment(ctx, env), unlinked === true)) {
      if (items.length === most) return { items, more: true };
      items.push(upload);
    }
    return { items, more: false };
  });
  printResult(at.json, found, () =>
    found.items.length === 0
      ? `There are no ${unlinked === true ? 'unlinked ' : ''}uploads in ${env}.`
      : table(
          ['id', 'name', 'type', 'size', 'by', 'comment', 'created'],
          found.items.map((item) => [
            item.id,
            item.filename,
            item.mimeType,
            bytesText(item.sizeBytes),
            item.uploadedBy,
            item.commentId ?? 'none',
            item.createdAt,
          ]),
        ) + moreText(found),
  );
}

async function show(id: string, { env }: { env: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const upload = await withStore(at, async (ctx) => getUpload(ctx, await findEnvironment(ctx, env), id));
  printResult(at.json, upload, () =>
    keyValues([
      ['id', upload.id],
      ['name', upload.filename],
      ['type', upload.mimeType],
      ['size', `${upload.sizeBytes} bytes`],
      ['uploaded by', upload.uploadedBy],
      ['comment', upload.commentId ?? 'none'],
      ['sha256', upload.sha256],
      ['created', upload.createdAt],
    ]),
  );
}

async function remove(id: string, { env, yes }: { env: string; yes?: true }, command: Command): Promise<void> {
  const at = invocationOf(command);
  await withStore(at, async (ctx) => {
    const environment = await findEnvironment(ctx, env);
    const { filename, uploadedBy } = await getUpload(ctx, environment, id);
    await confirmDestruction({
      warning: `This deletes the file ${filename} of ${uploadedBy}. This cannot be undone.`,
      answer: 'yes',
      yes: yes === true,
    });
    await deleteUpload(ctx, environment, id);
  });
  printResult(at.json, { deleted: true, id }, () => `Deleted the upload ${id}.`);
}
