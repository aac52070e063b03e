import type { Command } from 'commander';
import { findEnvironment } from '../../domain/environments/environments.ts';
import { mintUserToken, type TokenRequest } from '../../domain/access/tokens.ts';
import { addCommand, addGroup, choiceOption, durationOption, listOption } from '../command.ts';
import { invocation, withStore } from '../shared/folder.ts';
import { next, printResult } from '../terminal/output.ts';

const roles = ['viewer', 'member', 'moderator'] as const;

interface CreateOptions {
  readonly env: string;
  readonly user: string;
  readonly ttl: string;
  readonly name?: string;
  readonly avatarUrl?: string;
  readonly role?: string;
  readonly rooms?: string;
}

/** Adds `token create`. */
export function register(program: Command): void {
  const token = addGroup(program, 'token', 'User tokens, as your backend would sign them: to try things out.');

  addCommand(token, 'create', {
    summary: 'Sign a token for a user with the signing secret of the environment.',
    examples: [
      'collab token create --env default --user ann',
      'collab token create --env default --user ann --ttl 12h --role moderator --rooms "docs/*,home"',
    ],
  })
    .requiredOption('--env <slug>', 'Environment that it is for.')
    .requiredOption('--user <id>', 'Id of the user (sub).')
    .option('--ttl <duration>', 'How long it is good for.', '1h')
    .option('--name <text>', 'Name of the user.')
    .option('--avatar-url <url>', 'Address of a picture.')
    .option('--role <role>', `${roles.join(', ')} (default: member).`)
    .option('--rooms <rooms>', 'Rooms or prefix* that it reaches, separated by commas (default: all).')
    .action(create);
}

async function create(options: CreateOptions, command: Command): Promise<void> {
  const at = invocation(command);
  const { env, user, ttl, name, avatarUrl, role, rooms } = options;
  const request: TokenRequest = {
    userId: user,
    ttlSeconds: durationOption('ttl', ttl),
    ...(name !== undefined && { name }),
    ...(avatarUrl !== undefined && { avatarUrl }),
    ...(role !== undefined && { role: choiceOption('role', role, roles) }),
    ...(rooms !== undefined && { rooms: listOption(rooms) }),
  };
  const made = await withStore(at, async (ctx) => mintUserToken(ctx, await findEnvironment(ctx, env), request));
  printResult(at.json, made, () =>
    `${made.token}\n\nGood until ${made.expiresAt}.${next('Send it as X-Service-Token, beside the publishable key as X-Service-Key.')}`,
  );
}
