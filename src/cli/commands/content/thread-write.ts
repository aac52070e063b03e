import type { Command } from 'commander';
import { createThread, patchThread } from '../../../domain/comments/threads.ts';
import type { Comment } from '../../../model/comment.ts';
import type { Thread } from '../../../model/thread.ts';
import { addCommand } from '../../command.ts';
import { usageFailure } from '../../failure.ts';
import { addContentOptions, contentInput, type ContentOptions, writeContent } from '../../shared/content.ts';
import { printContent } from '../../shared/file-urls.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { keyValues, nextSteps, printResult } from '../../terminal/output.ts';

/** A thread as its creation returns it. */
type CreatedThread = Thread & { readonly comments: readonly Comment[]; readonly status?: 'held' };

/** Adds `thread create|update`. */
export function addThreadWrites(thread: Command): void {
  const create = addCommand(thread, 'create', {
    summary: 'Create a thread with its first comment.',
    details:
      'Creates the room too if it is new. Browsers see the thread at once, and mentioned users are ' +
      'notified. Filters of plugins apply as to a request with a secret key.',
    examples: [
      'collab thread create --env default --room demo --user ann --body "Is this the latest logo?"',
      'collab thread create --env default --room demo --user ann --body - --mention bob --metadata \'{"priority":1}\' --json < text.txt',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the room.')
    .requiredOption('--room <id>', 'Room of the thread.')
    .requiredOption('--user <id>', 'Author.');
  addContentOptions(create, 'Metadata of the thread, as a JSON object.')
    .option('--position <json>', 'Place on the page, such as {"x":0.5,"y":0.25} (default: none).')
    .action(createOne);

  addCommand(thread, 'update <id>', {
    summary: 'Replace the metadata of a thread, or pin it elsewhere.',
    details: 'Fields without an option are unchanged.',
    examples: [
      'collab thread update th_1m824gecgs4y1gdw90dr --env default --metadata \'{"priority":2}\'',
      'collab thread update th_1m824gecgs4y1gdw90dr --env default --position \'{"x":0.5,"y":0.25}\'',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the thread.')
    .option('--metadata <json>', 'Metadata of the thread, as a JSON object.')
    .option('--position <json>', 'Place on the page, such as {"x":0.5,"y":0.25}.')
    .action(update);
}

async function createOne(
  options: ContentOptions & { env: string; room: string; user: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const { env, room, user } = options;
  const input = { userId: user, ...(await contentInput(options)) };
  const { body } = await writeContent(at, env, (ctx, actor) => createThread(ctx, actor, room, input, null));
  const { thread } = JSON.parse(body) as { thread: CreatedThread };
  const isHeld = thread.status === 'held';
  printContent(at, thread, () =>
    [
      isHeld ? `The thread in ${room} is held until a moderator approves it.` : `Created the thread in ${room}.`,
      '',
      keyValues([
        ['thread', thread.id],
        ['comment', thread.comments[0]?.id ?? ''],
      ]),
      nextSteps(isHeld ? `collab moderation list --env ${env}` : `collab thread show ${thread.id} --env ${env}`),
    ].join('\n'),
  );
}

async function update(
  id: string,
  { env, ...options }: Pick<ContentOptions, 'metadata' | 'position'> & { env: string },
  command: Command,
): Promise<void> {
  if (Object.keys(options).length === 0)
    throw usageFailure(
      'No option was given, so there is nothing to change.',
      '`collab thread update --help` lists the options.',
    );
  const at = invocationOf(command);
  const input = await contentInput(options);
  const text = await writeContent(at, env, (ctx, actor) => patchThread(ctx, actor, id, input));
  printResult(at.json, JSON.parse(text), () => `Updated the thread ${id}.`);
}
