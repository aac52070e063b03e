import type { Command } from 'commander';
import { MEGABYTE } from '../../../lib/bytes.ts';
import {
  createSignedEnvironment,
  deleteEnvironment,
  findDeletable,
  findEnvironment,
  listEnvironments,
  updateEnvironment,
} from '../../../domain/environments/environments.ts';
import { readUsage, TOTAL_KEY } from '../../../domain/quotas/usage.ts';
import { formatDuration } from '../../../lib/duration.ts';
import { type Environment, quotasOf } from '../../../model/environments/environment.ts';
import { addCommand, addGroup } from '../../command.ts';
import { booleanFlag, choiceFlag, choicesFlag } from '../../option-values.ts';
import { invocationOf } from '../../shared/invocation.ts';
import { withStore } from '../../shared/open-store.ts';
import { keyValues, nextSteps, printResult, table } from '../../terminal/output.ts';
import { confirmDestruction } from '../../terminal/prompt.ts';
import { crdtKinds, limitNames, mediaKinds, patchOf, quotaNames, type UpdateOptions } from './env-update-options.ts';

/** Adds `env create|list|show|update|delete`. */
export function register(program: Command): void {
  const env = addGroup(program, 'env', 'Environments: separate sets of rooms, users and keys.');

  addCommand(env, 'create <slug>', {
    summary: 'Create an environment.',
    details:
      'Also creates a secret for signing user tokens, which is shown once. Create keys with `collab key create`.',
    examples: ['collab env create staging --name "Staging"', 'collab env create staging --json'],
  })
    .option('--name <text>', 'Display name (default: the slug).')
    .action(create);

  addCommand(env, 'list', { summary: 'List all environments.', examples: ['collab env list'] }).action(list);

  addCommand(env, 'show <slug>', {
    summary: 'Show an environment and its settings.',
    examples: ['collab env show staging', 'collab env show staging --json'],
  }).action(show);

  addCommand(env, 'update <slug>', {
    summary: 'Change the name or the settings of an environment.',
    details: 'Applies to a running server at once. Settings without an option are unchanged.',
    examples: [
      'collab env update staging --max-file-size-mb 25 --disable-media video',
      'collab env update staging --allowed-origins https://app.example.com,https://example.com',
      'collab env update staging --require-known-users false --limits bodyLength=5000,mentions=20',
      'collab env update staging --quotas userComments=5000,uploadMb=off',
    ],
  })
    .option('--name <text>', 'Display name.')
    .addOption(booleanFlag('--disabled <boolean>', 'true refuses every request and socket of the environment.'))
    .option('--max-file-size-mb <n>', 'Largest upload in megabytes, 1 to 10240.')
    .addOption(choicesFlag('--enable-media <types>', 'Media types to accept, separated by commas.', mediaKinds))
    .addOption(choicesFlag('--disable-media <types>', 'Media types to refuse, separated by commas.', mediaKinds))
    .option('--max-p2p-state-mb <n>', 'Largest shared state of a room in megabytes, 1 to 100.')
    .addOption(
      choiceFlag(
        '--crdt <type>',
        'Type of shared states: opaque bytes that a write replaces, or Yjs documents that a write is merged into.',
        crdtKinds,
      ),
    )
    .addOption(booleanFlag('--require-known-users <boolean>', 'Whether authors must be known users.'))
    .addOption(
      booleanFlag(
        '--strict <boolean>',
        'true refuses misspelled fields and parameters of requests, which otherwise get a hint.',
      ),
    )
    .option('--allowed-origins <origins>', 'Origins that browsers may connect from, separated by commas; "" for any.')
    .option('--token-lifetime <duration>', 'Longest lifetime of a user token from issue to expiry, 1m to 365d.')
    .option('--token-issuer <iss>', 'Issuer (iss) that user tokens must have; "" for any.')
    .option('--limits <name=n>', `Limits on request contents, separated by commas: ${limitNames.join(', ')}.`)
    .option(
      '--quotas <name=n|off>',
      `Limits on what may be stored in total and written by one user, separated by commas; off removes one: ${quotaNames.join(', ')}.`,
    )
    .action(update);

  addCommand(env, 'delete <slug>', {
    summary: 'Delete an environment with all its contents.',
    details:
      'Asks for the slug first. This cannot be undone. If it is interrupted, run it again; a running server also completes it.',
    examples: ['collab env delete staging', 'collab env delete staging --yes'],
  })
    .option('--yes', 'Do not ask.')
    .action(remove);
}

async function create(slug: string, options: { name?: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const input = options.name === undefined ? { slug } : { slug, name: options.name };
  const { environment, jwtSecret, jwtKid } = await withStore(at, (ctx) => createSignedEnvironment(ctx, input));
  printResult(at.json, { ...environment, jwtSecret, jwtKid }, () =>
    [
      `Created the environment ${slug}.`,
      '',
      keyValues([
        ['id', environment.id],
        ['slug', slug],
        ['signing secret', jwtSecret],
        ['kid', jwtKid],
      ]),
      '',
      'The signing secret is not shown again. Store it in the backend that signs your user tokens.',
      nextSteps(`collab key create --env ${slug} --kind secret`, `collab key create --env ${slug} --kind publishable`),
    ].join('\n'),
  );
}

async function list(_options: object, command: Command): Promise<void> {
  const at = invocationOf(command);
  const items = await withStore(at, listEnvironments);
  printResult(at.json, { items }, () =>
    items.length === 0
      ? `There are no environments yet.${nextSteps('collab env create <slug>')}`
      : table(
          ['slug', 'name', 'id', 'state', 'created'],
          items.map((item) => [item.slug, item.name, item.id, state(item), item.createdAt]),
        ),
  );
}

async function show(slug: string, _options: object, command: Command): Promise<void> {
  const at = invocationOf(command);
  const { environment, usage } = await withStore(at, async (ctx) => {
    const found = await findEnvironment(ctx, slug);
    return { environment: found, usage: await readUsage(ctx.store, found.id, TOTAL_KEY) };
  });
  const quotas = quotasOf(environment);
  const used = (amount: number, max: number | null, unit: string): string =>
    `${amount} of ${max ?? 'unlimited'}${unit}`;
  printResult(at.json, { ...environment, usage }, () =>
    [
      describe(environment),
      '',
      keyValues([
        ['comments', used(usage.comments, quotas.comments, '')],
        ['uploads', used(megabytes(usage.uploadBytes), quotas.uploadMb, ' MB')],
        ['shared states', used(megabytes(usage.stateBytes), quotas.stateMb, ' MB')],
      ]),
    ].join('\n'),
  );
}

async function update(slug: string, options: UpdateOptions, command: Command): Promise<void> {
  const at = invocationOf(command);
  const patch = patchOf(options);
  const environment = await withStore(at, async (ctx) => {
    const current = await findEnvironment(ctx, slug);
    return updateEnvironment(ctx, current.id, patch);
  });
  printResult(at.json, environment, () => `Updated the environment ${environment.slug}.\n\n${describe(environment)}`);
}

async function remove(slug: string, options: { yes?: true }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const environment = await withStore(at, async (ctx) => {
    const found = await findDeletable(ctx, slug);
    const warning = `This deletes the environment ${found.slug} with all its rooms, threads, users and keys. This cannot be undone.`;
    await confirmDestruction({ warning, answer: found.slug, yes: options.yes === true });
    await deleteEnvironment(ctx, found.id);
    return found;
  });
  printResult(
    at.json,
    { deleted: true, id: environment.id, slug: environment.slug },
    () => `Deleted the environment ${environment.slug}.`,
  );
}

function describe(environment: Environment): string {
  const { settings } = environment;
  const media = mediaKinds.filter((type) => settings.media[type]);
  return keyValues([
    ['slug', environment.slug],
    ['name', environment.name],
    ['id', environment.id],
    ['state', state(environment)],
    ['known users required', settings.requireKnownUsers ? 'yes' : 'no'],
    ['misspelled fields', settings.strict ? 'refused' : 'get a hint'],
    ['allowed origins', settings.allowedOrigins.join(', ') || 'any'],
    ['largest file', `${settings.maxFileSizeMb} MB`],
    ['media types', media.join(', ') || 'none'],
    ['largest shared state', `${settings.maxP2pStateMb} MB`],
    ['type of shared states', settings.crdt === 'yjs' ? 'Yjs documents' : 'opaque'],
    ['token lifetime', `at most ${formatDuration(settings.jwtMaxLifetime)}`],
    ['token issuer', settings.jwtIssuer ?? 'any'],
    [
      'custom limits',
      Object.entries(settings.limits)
        .map(([name, value]) => `${name}=${value}`)
        .join(', ') || 'none',
    ],
    [
      'custom quotas',
      Object.entries(settings.quotas)
        .map(([name, value]) => `${name}=${value ?? 'off'}`)
        .join(', ') || 'none',
    ],
    ['created', environment.createdAt],
    ['updated', environment.updatedAt],
  ]);
}

const megabytes = (bytes: number): number => Math.ceil(bytes / MEGABYTE);

function state({ disabled }: Environment): string {
  return disabled ? 'disabled' : 'active';
}
