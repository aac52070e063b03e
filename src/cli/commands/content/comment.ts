import type { Command } from 'commander';
import { operatorActor } from '../../../domain/access/actor.ts';
import { deleteComment, getComment, listComments } from '../../../domain/comments/comments.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import type { Comment } from '../../../model/comment.ts';
import { addCommand, addGroup } from '../../command.ts';
import { printContent } from '../../shared/file-urls.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { limitHelp, listItems, moreText } from '../../shared/list-items.ts';
import { withStore } from '../../shared/open-store.ts';
import { excerpt, keyValues, printResult, table } from '../../terminal/output.ts';
import { confirmDestruction } from '../../terminal/prompt.ts';
import { addCommentWrites } from './comment-write.ts';

/** Adds `comment list|show|create|edit|delete`. */
export function register(program: Command): void {
  const comment = addGroup(program, 'comment', 'Comments of threads.');
  const ENV = 'Environment of the comment.';

  addCommand(comment, 'list <threadId>', {
    summary: 'List the comments of a thread, oldest first.',
    examples: [
      'collab comment list th_1m824gecgs4y1gdw90dr --env default',
      'collab comment list th_1m824gecgs4y1gdw90dr --env default --user ann --json',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the thread.')
    .option('--user <id>', 'Only comments of this author.')
    .option('--limit <n>', limitHelp('comments'), '100')
    .action(list);

  addCommand(comment, 'show <id>', {
    summary: 'Show a comment.',
    examples: ['collab comment show cm_1m824gecgs4y1gdw90dr_1m824gecgs4y10ds --env default'],
  })
    .requiredOption('--env <slug>', ENV)
    .action(show);

  addCommentWrites(comment);

  addCommand(comment, 'delete <id>', {
    summary: 'Delete a comment with its files.',
    details: 'Asks first. This cannot be undone. Deleting the last comment of a thread deletes the thread too.',
    examples: ['collab comment delete cm_1m824gecgs4y1gdw90dr_1m824gecgs4y10ds --env default --yes'],
  })
    .requiredOption('--env <slug>', ENV)
    .option('--yes', 'Do not ask.')
    .action(remove);
}

async function list(
  threadId: string,
  { env, user, limit }: { env: string; user?: string; limit: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const found = await withStore(at, async (ctx) => {
    const actor = operatorActor(await findEnvironment(ctx, env));
    return listItems<Comment>('comments', { userId: user }, limit, (query) =>
      listComments(ctx, actor, threadId, query),
    );
  });
  printContent(at, found, () =>
    found.items.length === 0
      ? `There are no such comments in ${threadId}.`
      : table(
          ['id', 'author', 'created', 'files', 'text'],
          found.items.map((item) => [
            item.id,
            item.userId,
            item.createdAt,
            String(item.attachments.length),
            excerpt(item.body),
          ]),
        ) + moreText(found),
  );
}

async function show(id: string, { env }: { env: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const comment = await withStore(at, async (ctx) =>
    commentIn(await getComment(ctx, operatorActor(await findEnvironment(ctx, env)), id)),
  );
  printContent(at, comment, () =>
    keyValues([
      ['id', comment.id],
      ['thread', comment.threadId],
      ['author', comment.userId],
      ['text', comment.body],
      ['mentions', comment.mentions.join(', ') || 'none'],
      ['files', comment.attachments.map(({ id: file, filename }) => `${filename} (${file})`).join(', ') || 'none'],
      ['reactions', comment.reactions.map(({ emoji }) => emoji).join(' ') || 'none'],
      ['metadata', JSON.stringify(comment.metadata)],
      ['created', comment.createdAt],
      ['edited', comment.editedAt ?? 'never'],
    ]),
  );
}

async function remove(id: string, { env, yes }: { env: string; yes?: true }, command: Command): Promise<void> {
  const at = invocationOf(command);
  await withStore(at, async (ctx) => {
    const actor = operatorActor(await findEnvironment(ctx, env));
    const { userId, body } = commentIn(await getComment(ctx, actor, id));
    await confirmDestruction({
      warning: `This deletes the comment of ${userId}: "${excerpt(body)}". This cannot be undone.`,
      answer: 'yes',
      yes: yes === true,
    });
    await deleteComment(ctx, actor, id);
  });
  printResult(at.json, { deleted: true, id }, () => `Deleted the comment ${id}.`);
}

function commentIn(text: string): Comment {
  return (JSON.parse(text) as { comment: Comment }).comment;
}
