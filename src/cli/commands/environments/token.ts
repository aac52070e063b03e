import type { Command } from 'commander';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { signUserToken, type TokenRequest } from '../../../domain/access/tokens.ts';
import { addCommand, addGroup } from '../../command.ts';
import { choiceFlag, durationOption, listOption } from '../../option-values.ts';
import { withStore } from '../../shared/open-store.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { nextSteps, printResult } from '../../terminal/output.ts';
import { roles } from '../../../model/role-schema.ts';

interface CreateOptions {
  readonly env: string;
  readonly user: string;
  readonly ttl: string;
  readonly name?: string;
  readonly avatarUrl?: string;
  readonly role?: (typeof roles)[number];
  readonly rooms?: string;
}

/** Adds `token create`. */
export function register(program: Command): void {
  const token = addGroup(program, 'token', 'User tokens, as your backend would sign them, for trying things out.');

  addCommand(token, 'create', {
    summary: 'Sign a token for a user with the signing secret of the environment.',
    examples: [
      'collab token create --env default --user ann',
      'collab token create --env default --user ann --ttl 12h --role moderator --rooms "docs/*,home"',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the user.')
    .requiredOption('--user <id>', 'Id of the user (sub).')
    .option(
      '--ttl <duration>',
      'Lifetime, at most that of the environment (24h, see collab env update --token-lifetime).',
      '1h',
    )
    .option('--name <text>', 'Name of the user.')
    .option('--avatar-url <url>', 'URL of a picture.')
    .addOption(choiceFlag('--role <role>', 'Role of the user (default: member).', roles))
    .option('--rooms <rooms>', 'Rooms or prefix* that the user can access, separated by commas (default: all).')
    .action(create);
}

async function create(options: CreateOptions, command: Command): Promise<void> {
  const at = invocationOf(command);
  const { env, user, ttl, name, avatarUrl, role, rooms } = options;
  // Before the folder is opened, as all faults of the call alone.
  durationOption('ttl', ttl);
  const request: Omit<TokenRequest, 'ttlSeconds'> = {
    userId: user,
    ...(name !== undefined && { name }),
    ...(avatarUrl !== undefined && { avatarUrl }),
    ...(role !== undefined && { role }),
    ...(rooms !== undefined && { rooms: listOption(rooms) }),
  };
  const token = await withStore(at, async (ctx) => {
    const environment = await findEnvironment(ctx, env);
    const remedy = `\`collab env update ${environment.slug} --token-lifetime <duration>\` changes the longest lifetime.`;
    const ttlSeconds = durationOption('ttl', ttl, { min: 1, max: environment.settings.jwtMaxLifetime, remedy });
    return signUserToken(ctx, environment, { ...request, ttlSeconds });
  });
  printResult(
    at.json,
    token,
    () =>
      `${token.token}\n\nValid until ` +
      `${token.expiresAt}.${nextSteps('Send it as X-Service-Token, together with the publishable key as X-Service-Key.')}`,
  );
}
