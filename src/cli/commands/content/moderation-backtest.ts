import type { Command } from 'commander';
import type { Config } from '../../../config/schema.ts';
import type { Context } from '../../../domain/context.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { backtest, type BacktestOptions, type BacktestResult } from '../../../domain/moderation/backtest.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import type { Filters } from '../../../ports/filters.ts';
import { addCommand } from '../../command.ts';
import { Failure } from '../../failure.ts';
import { integerOption, timeOption } from '../../option-values.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { withStore } from '../../shared/open-store.ts';
import { excerpt, printResult, table } from '../../terminal/output.ts';

const MAX_TESTED = 100_000;

/** A comment that the filters would not have published unchanged. */
interface Hit {
  readonly outcome: 'reject' | 'hold' | 'change';
  /** Null for a change, which several plugins may have made. */
  readonly plugin: string | null;
  readonly reason: string | null;
  readonly roomId: string;
  readonly threadId: string;
  readonly commentId: string;
  readonly userId: string;
  readonly createdAt: string;
  readonly body: string;
}

/** The result of a backtest. */
interface Report {
  readonly tested: number;
  readonly items: readonly Hit[];
}

/** Adds `moderation backtest`. */
export function addBacktest(moderation: Command): void {
  addCommand(moderation, 'backtest', {
    summary: 'Show what the filters of the configured plugins would do with stored comments.',
    details:
      'Runs them in the order in which the comments were written, as if each author wrote the comment at ' +
      'its time with a user token. Changes nothing, but moderation-http asks its service about every ' +
      'comment.',
    examples: [
      'collab moderation backtest --env default',
      'collab moderation backtest --env default --since 7d --limit 10000 --json',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the comments.')
    .option('--since <time>', 'Only comments since this ISO 8601 time, or of the last 7d, 12h or 30m (default: all).')
    .option('--limit <n>', `The most comments to test, the latest ones, 1 to ${MAX_TESTED}.`, '1000')
    .action(run);
}

async function run(
  { env, since, limit }: { env: string; since?: string; limit: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  let now = Date.now();
  const options: BacktestOptions = {
    since: since === undefined ? null : timeOption('since', since, now),
    limit: integerOption('limit', limit, 1, MAX_TESTED),
    setTime: (ms) => void (now = ms),
  };
  const report = await withStore(at, async (ctx, config) => {
    const environment = await findEnvironment(ctx, env);
    return withCommentFilters(
      ctx,
      config,
      environment,
      () => now,
      (filters) => test(ctx, filters, environment, options),
    );
  });
  const { tested, items } = report;
  const count = (outcome: Hit['outcome']): number => items.filter((item) => item.outcome === outcome).length;
  const [held, rejected, changed] = [count('hold'), count('reject'), count('change')];
  printResult(at.json, { tested, held, rejected, changed, items }, () =>
    [
      ...(items.length === 0 ? [] : [table(['outcome', 'author', 'comment', 'why', 'text'], items.map(rowOf))]),
      `Of ${tested} comments, ${held} would be held, ${rejected} rejected and ${changed} changed.`,
    ].join('\n'),
  );
}

/**
 * Runs `work` with the filters of the configured plugins, whose writes are dropped and whose time is `now`. Throws
 * `Failure` if there are none in the environment.
 */
async function withCommentFilters<T>(
  ctx: Context,
  config: Config,
  environment: Environment,
  now: () => number,
  work: (filters: Filters) => Promise<T>,
): Promise<T> {
  const { withFilters } = await import('../../shared/with-filters.ts');
  return withFilters(ctx, config, now, (filters) => {
    if (
      filters === undefined ||
      !(filters.has('comment.create', environment) || filters.has('thread.create', environment))
    ) {
      throw new Failure(`No plugin of the configuration filters comments in ${environment.slug}.`, [
        'Name one in the option plugins, such as moderation-rules (docs/moderation.md). `collab plugin list` shows the hooks of each.',
      ]);
    }
    return work(filters);
  });
}

async function test(
  ctx: Context,
  filters: Filters,
  environment: Environment,
  options: BacktestOptions,
): Promise<Report> {
  let tested = 0;
  const items: Hit[] = [];
  for await (const result of backtest(ctx, filters, environment, options)) {
    tested++;
    const hit = hitOf(result);
    if (hit !== null) items.push(hit);
  }
  return { tested, items };
}

function hitOf({ roomId, comment, outcome }: BacktestResult): Hit | null {
  const { id, threadId, userId, createdAt, body } = comment;
  const about = { roomId, threadId, commentId: id, userId, createdAt, body };
  if (outcome.outcome === 'hold') return { outcome: 'hold', plugin: outcome.plugin, reason: outcome.reason, ...about };
  if (outcome.outcome === 'reject')
    return { outcome: 'reject', plugin: outcome.plugin, reason: outcome.message, ...about };
  return Object.keys(outcome.fields).length === 0
    ? null
    : { outcome: 'change', plugin: null, reason: `sets ${Object.keys(outcome.fields).join(', ')}`, ...about };
}

function rowOf({ outcome, userId, commentId, plugin, reason, body }: Hit): string[] {
  return [outcome, userId, commentId, plugin === null ? (reason ?? '') : `${plugin}: ${reason}`, excerpt(body)];
}
