import type { Command } from 'commander';
import { deleteThread, getThread, listThreads, setResolved } from '../../../domain/comments/threads.ts';
import type { Context } from '../../../domain/context.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { type BackendActor, operatorActor } from '../../../domain/access/actor.ts';
import type { Comment } from '../../../model/comment.ts';
import type { Thread } from '../../../model/thread.ts';
import { addCommand, addGroup } from '../../command.ts';
import { booleanFlag } from '../../option-values.ts';
import { printContent } from '../../shared/file-urls.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { limitHelp, listItems, moreText } from '../../shared/list-items.ts';
import { withStore } from '../../shared/open-store.ts';
import { excerpt, keyValues, nextSteps, printResult, table } from '../../terminal/output.ts';
import { confirmDestruction } from '../../terminal/prompt.ts';
import { addThreadWrites } from './thread-write.ts';

type ThreadWithComments = Thread & { readonly comments: readonly Comment[] };

/** Adds `thread list|show|create|update|resolve|reopen|delete`. */
export function register(program: Command): void {
  const thread = addGroup(program, 'thread', 'Threads: conversations at a place of a page.');
  const ENV = 'Environment of the thread.';

  addCommand(thread, 'list <roomId>', {
    summary: 'List the threads of a room, newest first.',
    examples: [
      'collab thread list demo --env default',
      'collab thread list demo --env default --resolved false --json',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the room.')
    .addOption(booleanFlag('--resolved <boolean>', 'Only resolved threads, or only open ones (default: all).'))
    .option('--limit <n>', limitHelp('threads'), '100')
    .action(list);

  addCommand(thread, 'show <id>', {
    summary: 'Show a thread with its comments.',
    examples: ['collab thread show th_1m824gecgs4y1gdw90dr --env default'],
  })
    .requiredOption('--env <slug>', ENV)
    .action(show);

  addThreadWrites(thread);

  for (const [name, resolved, summary] of [
    ['resolve', true, 'Resolve a thread.'],
    ['reopen', false, 'Open a resolved thread again.'],
  ] as const) {
    addCommand(thread, `${name} <id>`, {
      summary,
      details: 'A thread already in this state is left unchanged.',
      examples: [`collab thread ${name} th_1m824gecgs4y1gdw90dr --env default`],
    })
      .requiredOption('--env <slug>', ENV)
      .action((id: string, options: { env: string }, command: Command) => change(id, options, resolved, command));
  }

  addCommand(thread, 'delete <id>', {
    summary: 'Delete a thread with its comments and their files.',
    details: 'Asks first. This cannot be undone.',
    examples: ['collab thread delete th_1m824gecgs4y1gdw90dr --env default --yes'],
  })
    .requiredOption('--env <slug>', ENV)
    .option('--yes', 'Do not ask.')
    .action(remove);
}

async function list(
  roomId: string,
  { env, resolved, limit }: { env: string; resolved?: boolean; limit: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const found = await inEnvironment(command, env, (ctx, actor) =>
    listItems<Thread>('threads', { resolved: resolved === undefined ? undefined : String(resolved) }, limit, (query) =>
      listThreads(ctx, actor, roomId, query),
    ),
  );
  printResult(at.json, found, () =>
    found.items.length === 0
      ? `There are no such threads in ${roomId}.`
      : table(
          ['id', 'state', 'author', 'comments', 'created', 'updated'],
          found.items.map((item) => [
            item.id,
            stateOf(item),
            item.userId,
            String(item.commentCount),
            item.createdAt,
            item.updatedAt,
          ]),
        ) + moreText(found),
  );
}

async function show(id: string, { env }: { env: string }, command: Command): Promise<void> {
  const thread = await inEnvironment(command, env, async (ctx, actor) => threadIn(await getThread(ctx, actor, id)));
  printContent(invocationOf(command), thread, () =>
    [
      keyValues([
        ['id', thread.id],
        ['room', thread.roomId],
        [
          'state',
          thread.resolvedAt === null
            ? stateOf(thread)
            : `${stateOf(thread)} ${thread.resolvedAt} by ${thread.resolvedBy ?? 'backend'}`,
        ],
        ['position', JSON.stringify(thread.position)],
        ['metadata', JSON.stringify(thread.metadata)],
        ['created', thread.createdAt],
        ['updated', thread.updatedAt],
      ]),
      '',
      table(
        ['comment', 'author', 'created', 'text'],
        thread.comments.map((comment) => [comment.id, comment.userId, comment.createdAt, excerpt(comment.body)]),
      ),
      nextSteps(`collab thread ${thread.resolved ? 'reopen' : 'resolve'} ${id} --env ${env}`),
    ].join('\n'),
  );
}

async function change(id: string, { env }: { env: string }, resolved: boolean, command: Command): Promise<void> {
  const text = await inEnvironment(command, env, (ctx, actor) => setResolved(ctx, actor, id, resolved));
  printResult(
    invocationOf(command).json,
    JSON.parse(text),
    () => `The thread ${id} is ${resolved ? 'resolved' : 'open'}.`,
  );
}

async function remove(id: string, { env, yes }: { env: string; yes?: true }, command: Command): Promise<void> {
  const thread = await inEnvironment(command, env, async (ctx, actor) => {
    const found = threadIn(await getThread(ctx, actor, id));
    await confirmDestruction({
      warning: `This deletes the thread ${id} in ${found.roomId} with its ${found.commentCount} comments. This cannot be undone.`,
      answer: 'yes',
      yes: yes === true,
    });
    await deleteThread(ctx, actor, id);
    return found;
  });
  printResult(
    invocationOf(command).json,
    { deleted: true, id, comments: thread.commentCount },
    () => `Deleted the thread ${id} with its ${thread.commentCount} comments.`,
  );
}

function inEnvironment<T>(
  command: Command,
  env: string,
  work: (ctx: Context, actor: BackendActor) => Promise<T>,
): Promise<T> {
  return withStore(invocationOf(command), async (ctx) => work(ctx, operatorActor(await findEnvironment(ctx, env))));
}

function threadIn(text: string): ThreadWithComments {
  const { thread, comments } = JSON.parse(text) as { thread: Thread; comments: Comment[] };
  return { ...thread, comments };
}

const stateOf = ({ resolved }: Thread): string => (resolved ? 'resolved' : 'open');
