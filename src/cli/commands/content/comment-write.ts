import type { Command } from 'commander';
import { createComment, editComment } from '../../../domain/comments/comments.ts';
import type { Comment } from '../../../model/comment.ts';
import { addCommand } from '../../command.ts';
import { addContentOptions, contentInput, type ContentOptions, writeContent } from '../../shared/content.ts';
import { printContent } from '../../shared/file-urls.ts';
import { type Invocation, invocationOf } from '../../shared/invocation.ts';
import { nextSteps } from '../../terminal/output.ts';

/** Adds `comment create|edit`. */
export function addCommentWrites(comment: Command): void {
  const create = addCommand(comment, 'create <threadId>', {
    summary: 'Add a comment to a thread.',
    details:
      'Browsers see it at once; mentioned users, and those who follow the thread, are notified. Filters of ' +
      'plugins apply as to a request with a secret key.',
    examples: [
      'collab comment create th_1m824gecgs4y1gdw90dr --env default --user ci-bot --body "Deployed."',
      'git log -1 --format=%B | collab comment create th_1m824gecgs4y1gdw90dr --env default --user ci-bot --body - --mention ann --json',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the thread.')
    .requiredOption('--user <id>', 'Author.');
  addContentOptions(create, 'Metadata of the comment, as a JSON object.').action(createOne);

  const edit = addCommand(comment, 'edit <id>', {
    summary: 'Change the text of a comment.',
    details:
      'Mentions, files and metadata are replaced if their option is given, and unchanged otherwise. The comment shows when it was edited.',
    examples: [
      'collab comment edit cm_1m824gecgs4y1gdw90dr_1m824gecgs4y10ds --env default --body "Deployed to production."',
    ],
  }).requiredOption('--env <slug>', 'Environment of the comment.');
  addContentOptions(edit, 'Metadata of the comment, as a JSON object.').action(editOne);
}

async function createOne(
  threadId: string,
  options: ContentOptions & { env: string; user: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const input = { userId: options.user, ...(await contentInput(options)) };
  const { body } = await writeContent(at, options.env, (ctx, actor) =>
    createComment(ctx, actor, threadId, input, null),
  );
  print(at, options.env, body, 'Created');
}

async function editOne(id: string, options: ContentOptions & { env: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const input = await contentInput(options);
  print(
    at,
    options.env,
    await writeContent(at, options.env, (ctx, actor) => editComment(ctx, actor, id, input)),
    'Edited',
  );
}

function print(at: Invocation, env: string, text: string, done: string): void {
  const { comment } = JSON.parse(text) as { comment: Comment & { readonly status?: 'held' } };
  printContent(at, comment, () =>
    comment.status === 'held'
      ? `The text of the comment ${comment.id} is held until a moderator approves it.${nextSteps(`collab moderation list --env ${env}`)}`
      : `${done} the comment ${comment.id}.${nextSteps(`collab comment show ${comment.id} --env ${env}`)}`,
  );
}
