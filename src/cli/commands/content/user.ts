import type { Command } from 'commander';
import { operatorActor } from '../../../domain/access/actor.ts';
import type { Context } from '../../../domain/context.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { parseListQuery } from '../../../domain/lists/list-query.ts';
import { getUser, listUsers, putUser, type UserView } from '../../../domain/users/users.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import { addCommand, addGroup } from '../../command.ts';
import { withStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { keyValues, nextSteps, printResult, table } from '../../terminal/output.ts';
import { shellWord } from '../../../lib/shell-word.ts';

interface AddOptions {
  readonly env: string;
  readonly name?: string;
  readonly email?: string;
  readonly avatarUrl?: string;
  readonly bot?: true;
}

/** Adds `user add|list|show`. */
export function register(program: Command): void {
  const user = addGroup(
    program,
    'user',
    'Users: the possible authors of comments. People become known when they connect; bots have to be added.',
  );

  addCommand(user, 'add <id>', {
    summary: 'Add or change a user.',
    details: 'Fields without an option are unchanged.',
    examples: [
      'collab user add ci-bot --env default --name "CI" --bot',
      'collab user add ann --env default --name Ann --email ann@example.com',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the user.')
    .option('--name <text>', 'Name shown next to comments.')
    .option('--email <address>', 'Email address, shown to backends only.')
    .option('--avatar-url <url>', 'URL of a picture.')
    .option('--bot', 'The user is a bot, not a person.')
    .action(add);

  addCommand(user, 'list', {
    summary: 'List the known users.',
    examples: ['collab user list --env default', 'collab user list --env default --query ann'],
  })
    .requiredOption('--env <slug>', 'Environment of the users.')
    .option('--query <text>', 'Only users whose id or name contains this.')
    .action(list);

  addCommand(user, 'show <id>', { summary: 'Show a user.', examples: ['collab user show ann --env default'] })
    .requiredOption('--env <slug>', 'Environment of the user.')
    .action(show);
}

async function add(id: string, options: AddOptions, command: Command): Promise<void> {
  const at = invocationOf(command);
  const { env, name, email, avatarUrl, bot } = options;
  const fields = {
    ...(name !== undefined && { name }),
    ...(email !== undefined && { email }),
    ...(avatarUrl !== undefined && { avatarUrl }),
    ...(bot === true && { kind: 'bot' }),
  };
  const text = await withStore(at, async (ctx) =>
    putUser(ctx, operatorActor(await findEnvironment(ctx, env)), id, fields),
  );
  const user = userIn(text);
  printResult(
    at.json,
    user,
    () =>
      `Saved the user ${user.userId}.${nextSteps(`collab token create --env ${env} --user ${shellWord(user.userId)}`)}`,
  );
}

async function list({ env, query }: { env: string; query?: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const items = await withStore(at, async (ctx) => allUsers(ctx, await findEnvironment(ctx, env), query));
  printResult(at.json, { items }, () =>
    items.length === 0
      ? `${query === undefined ? 'There are no users yet' : `No user matches "${query}"`}.${nextSteps(`collab user add <id> --env ${env}`)}`
      : table(
          ['id', 'name', 'kind', 'online', 'last seen'],
          items.map((user) => [
            user.userId,
            user.name ?? '',
            user.kind,
            yesNo(user.online),
            user.lastSeenAt ?? 'never',
          ]),
        ),
  );
}

async function show(id: string, { env }: { env: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const user = userIn(
    await withStore(at, async (ctx) => getUser(ctx, operatorActor(await findEnvironment(ctx, env)), id)),
  );
  printResult(at.json, user, () =>
    keyValues([
      ['id', user.userId],
      ['name', user.name ?? ''],
      ['kind', user.kind],
      ['email', user.email ?? ''],
      ['picture', user.avatarUrl ?? ''],
      ['online', yesNo(user.online)],
      ['known since', user.createdAt],
      ['first seen', user.firstSeenAt ?? 'never'],
      ['last seen', user.lastSeenAt ?? 'never'],
    ]),
  );
}

async function allUsers(ctx: Context, environment: Environment, query: string | undefined): Promise<UserView[]> {
  const items: UserView[] = [];
  const search = new URLSearchParams(query === undefined ? {} : { q: query });
  for (;;) {
    const page = await listUsers(ctx, operatorActor(environment), parseListQuery(search, 'users'));
    const text = typeof page.text === 'string' ? page.text : Buffer.from(page.text).toString();
    items.push(...(JSON.parse(text) as { items: UserView[] }).items);
    if (page.nextCursor === null) return items;
    search.set('cursor', page.nextCursor);
  }
}

function userIn(text: string): UserView {
  return (JSON.parse(text) as { user: UserView }).user;
}

function yesNo(value: boolean): string {
  return value ? 'yes' : 'no';
}
