import type { Command } from 'commander';
import { type BackendActor, operatorActor } from '../../../domain/access/actor.ts';
import type { Context } from '../../../domain/context.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { parseListQuery } from '../../../domain/lists/list-query.ts';
import { approveItem, rejectItem } from '../../../domain/moderation/decisions.ts';
import { getItem, listItems } from '../../../domain/moderation/items.ts';
import type { Comment } from '../../../model/comment.ts';
import type { ModerationItem, Report } from '../../../model/moderation.ts';
import { addCommand, addGroup } from '../../command.ts';
import { choiceFlag, integerOption } from '../../option-values.ts';
import { printContent } from '../../shared/file-urls.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { withStore } from '../../shared/open-store.ts';
import { excerpt, keyValues, nextSteps, printResult, table } from '../../terminal/output.ts';
import { confirmDestruction } from '../../terminal/prompt.ts';
import { addBacktest } from './moderation-backtest.ts';

const MAX_LISTED = 1_000;
const states = ['held', 'reported', 'decided'] as const;

/** An item as `listItems` and `getItem` render it. */
interface ItemView extends Omit<ModerationItem, 'reports'> {
  /** Of a report, the comment as it is now; null if it was deleted. */
  readonly current: Comment | null;
  readonly before: Comment | null;
  readonly reportCount: number;
  readonly reports: readonly Report[];
}

/** Adds `moderation list|show|approve|reject|backtest`. */
export function register(program: Command): void {
  const moderation = addGroup(
    program,
    'moderation',
    'Moderation: decide on held content and on comments that users have reported.',
  );
  const ENV = 'Environment of the content.';

  addCommand(moderation, 'list', {
    summary: 'List the moderation queue, oldest first.',
    examples: ['collab moderation list --env default', 'collab moderation list --env default --state reported --json'],
  })
    .requiredOption('--env <slug>', ENV)
    .addOption(
      choiceFlag('--state <state>', 'State of the items; decided items are kept for 30 days.', states).default('held'),
    )
    .option('--limit <n>', `The most items to list, 1 to ${MAX_LISTED}.`, '100')
    .action(list);

  addCommand(moderation, 'show <id>', {
    summary: 'Show an item of the queue with its text and reports.',
    examples: ['collab moderation show mod_01jq5w8z --env default'],
  })
    .requiredOption('--env <slug>', ENV)
    .action(show);

  addCommand(moderation, 'approve <id>', {
    summary: 'Approve held content, or dismiss the reports of a comment.',
    details: 'Held content appears as if it was written now, with its notifications.',
    examples: ['collab moderation approve mod_01jq5w8z --env default'],
  })
    .requiredOption('--env <slug>', ENV)
    .action(approve);

  addCommand(moderation, 'reject <id>', {
    summary: 'Reject held content, or delete a reported comment.',
    details: 'Asks first. This cannot be undone. The author can read the reason.',
    examples: ['collab moderation reject mod_01jq5w8z --env default --reason "Advertising is not allowed." --yes'],
  })
    .requiredOption('--env <slug>', ENV)
    .requiredOption('--reason <text>', 'Why, for the author; at most 1000 characters.')
    .option('--yes', 'Do not ask.')
    .action(reject);

  addBacktest(moderation);
}

async function list(
  { env, state, limit }: { env: string; state: string; limit: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const query = { limit: String(integerOption('limit', limit, 1, MAX_LISTED)), state };
  const text = await withStore(
    at,
    async (ctx) =>
      (await listItems(ctx, await actorIn(ctx, env), parseListQuery(new URLSearchParams(query), 'moderation'))).text,
  );
  const { items } = JSON.parse(String(text)) as { items: ItemView[] };
  printContent(at, { items }, () =>
    items.length === 0
      ? `Nothing is ${state} in ${env}.`
      : `${table(['id', 'kind', 'state', 'author', 'since', 'why', 'text'], items.map(rowOf))}${nextSteps(`collab moderation show ${items[0]?.id} --env ${env}`)}`,
  );
}

async function show(id: string, { env }: { env: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const { item } = JSON.parse(await withStore(at, async (ctx) => getItem(ctx, await actorIn(ctx, env), id))) as {
    item: ItemView;
  };
  printContent(at, item, () => describe(item, env));
}

async function approve(id: string, { env }: { env: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const { body: text } = await withStore(at, async (ctx) => approveItem(ctx, await actorIn(ctx, env), id, null));
  printResult(at.json, JSON.parse(text), () => `Approved ${id}.`);
}

async function reject(
  id: string,
  { env, reason, yes }: { env: string; reason: string; yes?: true },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const { body: text } = await withStore(at, async (ctx) => {
    const actor = await actorIn(ctx, env);
    const { item } = JSON.parse(await getItem(ctx, actor, id)) as { item: ItemView };
    const warning =
      item.kind === 'report'
        ? `This deletes the reported comment ${item.commentId} by ${item.userId}.`
        : `This rejects the ${item.kind} by ${item.userId} for good.`;
    await confirmDestruction({ warning, answer: 'yes', yes: yes === true });
    return rejectItem(ctx, actor, id, { reason }, null);
  });
  printResult(at.json, JSON.parse(text), () => `Rejected ${id}.`);
}

async function actorIn(ctx: Context, env: string): Promise<BackendActor> {
  return operatorActor(await findEnvironment(ctx, env));
}

function rowOf(item: ItemView): string[] {
  const { id, kind, state, userId, createdAt, comment } = item;
  const body = comment?.body ?? '';
  return [id, kind, state, userId, createdAt, whyOf(item), excerpt(body)];
}

function whyOf({ plugin, reason, reportCount }: ItemView): string {
  return plugin === null ? `${reportCount} ${reportCount === 1 ? 'report' : 'reports'}` : `${plugin}: ${reason}`;
}

function describe(item: ItemView, env: string): string {
  const {
    id,
    kind,
    state,
    roomId,
    threadId,
    commentId,
    userId,
    comment,
    current,
    before,
    reports,
    createdAt,
    decidedAt,
    decidedBy,
    rejection,
  } = item;
  const open = state === 'held' || state === 'reported';
  return [
    keyValues([
      ['id', id],
      ['kind', kind],
      ['state', state],
      ['author', userId],
      ['room', roomId],
      ['thread', threadId],
      ['comment', commentId],
      ['why', whyOf(item)],
      ['since', createdAt],
      ...(decidedAt === null
        ? []
        : [['decided', `${decidedAt} by ${decidedBy?.kind} ${decidedBy?.id ?? ''}`] as const]),
      ...(rejection === null ? [] : [['rejection', rejection] as const]),
      ...(before === null ? [] : [['text before', before.body] as const]),
      ['text', comment?.body ?? '(none)'],
      ...(kind === 'report' && current?.body !== comment?.body
        ? [['text now', current?.body ?? '(deleted)'] as const]
        : []),
      ['attachments', comment?.attachments.map(({ filename }) => filename).join(', ') || 'none'],
      ...reports.map(
        (report) => ['report', `${report.createdAt} ${report.userId ?? 'backend'}: ${report.reason}`] as const,
      ),
    ]),
    ...(open
      ? [
          nextSteps(
            `collab moderation approve ${id} --env ${env}`,
            `collab moderation reject ${id} --env ${env} --reason "…"`,
          ),
        ]
      : []),
  ].join('\n');
}
