import type { Command } from 'commander';
import { createSignedEnvironment, deleteEnvironment, findDeletable, findEnvironment, listEnvironments, updateEnvironment } from '../../domain/environments/environments.ts';
import { readUsage, TOTAL_KEY } from '../../domain/quotas/usage.ts';
import { formatDuration } from '../../lib/duration.ts';
import { type CrdtKind, type Environment, type EnvironmentPatch, type MediaType, quotasOf } from '../../model/environment.ts';
import { defaultLimits, type Limits } from '../../model/limits.ts';
import { defaultQuotas, MAX_QUOTA, type Quotas } from '../../model/quotas.ts';
import { addCommand, addGroup, booleanOption, choiceOption, durationOption, listOption, wholeOption } from '../command.ts';
import { usageFailure } from '../failure.ts';
import { invocation, withStore } from '../shared/folder.ts';
import { facts, next, printResult, table } from '../terminal/output.ts';
import { confirmDestruction } from '../terminal/prompt.ts';

const mediaTypes: readonly MediaType[] = ['image', 'audio', 'video'];
const crdtKinds: readonly CrdtKind[] = ['opaque', 'yjs'];
const limitNames = Object.keys(defaultLimits) as (keyof Limits)[];
const quotaNames = Object.keys(defaultQuotas) as (keyof Quotas)[];

interface UpdateOptions {
  readonly name?: string;
  readonly disabled?: string;
  readonly maxFileSizeMb?: string;
  readonly enableMedia?: string;
  readonly disableMedia?: string;
  readonly maxP2pStateMb?: string;
  readonly crdt?: string;
  readonly requireKnownUsers?: string;
  readonly allowedOrigins?: string;
  readonly tokenLifetime?: string;
  readonly tokenIssuer?: string;
  readonly limits?: string;
  readonly quotas?: string;
}

/** Adds `env create|list|show|update|delete`. */
export function register(program: Command): void {
  const env = addGroup(program, 'env', 'Environments: separate sets of rooms, users and keys.');

  addCommand(env, 'create <slug>', {
    summary: 'Make an environment.',
    details: 'It gets a secret to sign user tokens with, which is shown once. Keys are made with `collab key create`.',
    examples: ['collab env create staging --name "Staging"', 'collab env create staging --json'],
  })
    .option('--name <text>', 'Name for people (default: the slug).')
    .action(create);

  addCommand(env, 'list', { summary: 'List all environments.', examples: ['collab env list'] }).action(list);

  addCommand(env, 'show <slug>', {
    summary: 'Show an environment and its settings.',
    examples: ['collab env show staging', 'collab env show staging --json'],
  }).action(show);

  addCommand(env, 'update <slug>', {
    summary: 'Change the name or the settings of an environment.',
    details: 'A running server follows at once. What is not named stays as it is.',
    examples: [
      'collab env update staging --max-file-size-mb 25 --disable-media video',
      'collab env update staging --allowed-origins https://app.example.com,https://example.com',
      'collab env update staging --require-known-users false --limits bodyLength=5000,mentions=20',
      'collab env update staging --quotas userComments=5000,uploadMb=off',
    ],
  })
    .option('--name <text>', 'Name for people.')
    .option('--disabled <true|false>', 'true refuses every request and socket of the environment.')
    .option('--max-file-size-mb <n>', 'Largest upload in megabytes, 1 to 10240.')
    .option('--enable-media <types>', 'Media types to accept: image, audio, video.')
    .option('--disable-media <types>', 'Media types to refuse.')
    .option('--max-p2p-state-mb <n>', 'Largest shared state of a room in megabytes, 1 to 100.')
    .option('--crdt <opaque|yjs>', 'What shared states are: bytes that a write replaces, or Yjs documents that it is merged into.')
    .option('--require-known-users <true|false>', 'Whether an author must be known before writing.')
    .option('--allowed-origins <origins>', 'Origins that browsers may connect from, separated by commas; "" for any.')
    .option('--token-lifetime <duration>', 'Longest life of a user token, from issue to expiry, 1m to 365d.')
    .option('--token-issuer <iss>', 'Issuer that user tokens must name; "" for any.')
    .option('--limits <name=n>', `Bounds of what callers may send, separated by commas: ${limitNames.join(', ')}.`)
    .option('--quotas <name=n|off>', `How much may be stored, and written by one user, separated by commas: ${quotaNames.join(', ')}.`)
    .action(update);

  addCommand(env, 'delete <slug>', {
    summary: 'Delete an environment with everything in it.',
    details: 'Asks for the slug first. What is deleted cannot be brought back. If it is interrupted, call it again; a running server finishes it too.',
    examples: ['collab env delete staging', 'collab env delete staging --yes'],
  })
    .option('--yes', 'Do not ask.')
    .action(remove);
}

async function create(slug: string, options: { name?: string }, command: Command): Promise<void> {
  const at = invocation(command);
  const input = options.name === undefined ? { slug } : { slug, name: options.name };
  const { environment, jwtSecret, jwtKid } = await withStore(at, (ctx) => createSignedEnvironment(ctx, input));
  printResult(at.json, { ...environment, jwtSecret, jwtKid }, () =>
    [
      `Made the environment ${slug}.`,
      '',
      facts([['id', environment.id], ['slug', slug], ['signing secret', jwtSecret], ['its kid', jwtKid]]),
      '',
      'The signing secret is not shown again: keep it where your backend signs user tokens.',
      next(`collab key create --env ${slug} --kind secret`, `collab key create --env ${slug} --kind publishable`),
    ].join('\n'),
  );
}

async function list(_options: object, command: Command): Promise<void> {
  const at = invocation(command);
  const items = await withStore(at, listEnvironments);
  printResult(at.json, { items }, () =>
    items.length === 0
      ? `There is no environment yet.${next('collab env create <slug>')}`
      : table(['slug', 'name', 'id', 'state', 'created'], items.map((item) => [item.slug, item.name, item.id, state(item), item.createdAt])),
  );
}

async function show(slug: string, _options: object, command: Command): Promise<void> {
  const at = invocation(command);
  const { environment, usage } = await withStore(at, async (ctx) => {
    const found = await findEnvironment(ctx, slug);
    return { environment: found, usage: await readUsage(ctx.store, found.id, TOTAL_KEY) };
  });
  const quotas = quotasOf(environment);
  const used = (amount: number, most: number | null, unit: string): string => `${amount} of ${most ?? 'any number of'}${unit}`;
  printResult(at.json, { ...environment, usage }, () =>
    [
      describe(environment),
      '',
      facts([
        ['comments', used(usage.comments, quotas.comments, '')],
        ['uploads', used(megabytes(usage.uploadBytes), quotas.uploadMb, ' MB')],
        ['shared states', used(megabytes(usage.stateBytes), quotas.stateMb, ' MB')],
      ]),
    ].join('\n'),
  );
}

async function update(slug: string, options: UpdateOptions, command: Command): Promise<void> {
  const at = invocation(command);
  const patch = patchOf(options);
  const environment = await withStore(at, async (ctx) => {
    const current = await findEnvironment(ctx, slug);
    return updateEnvironment(ctx, current.id, patch);
  });
  printResult(at.json, environment, () => `Changed the environment ${environment.slug}.\n\n${describe(environment)}`);
}

async function remove(slug: string, options: { yes?: true }, command: Command): Promise<void> {
  const at = invocation(command);
  const environment = await withStore(at, async (ctx) => {
    const found = await findDeletable(ctx, slug);
    const warning = `This deletes the environment ${found.slug} with all its rooms, threads, users and keys, for good.`;
    await confirmDestruction({ warning, answer: found.slug, yes: options.yes === true });
    await deleteEnvironment(ctx, found.id);
    return found;
  });
  printResult(at.json, { deleted: true, id: environment.id, slug: environment.slug }, () => `Deleted the environment ${environment.slug}.`);
}

function patchOf(options: UpdateOptions): EnvironmentPatch {
  if (Object.keys(options).length === 0) {
    throw usageFailure('Nothing to change was given.', '`collab env update --help` shows the options.');
  }
  const { name, disabled, maxFileSizeMb, maxP2pStateMb, crdt, requireKnownUsers, allowedOrigins, tokenLifetime, tokenIssuer, limits, quotas } = options;
  return {
    ...(name !== undefined && { name }),
    ...(disabled !== undefined && { disabled: booleanOption('disabled', disabled) }),
    settings: {
      ...(maxFileSizeMb !== undefined && { maxFileSizeMb: wholeOption('max-file-size-mb', maxFileSizeMb, 1, 10_240) }),
      ...(maxP2pStateMb !== undefined && { maxP2pStateMb: wholeOption('max-p2p-state-mb', maxP2pStateMb, 1, 100) }),
      ...(crdt !== undefined && { crdt: choiceOption('crdt', crdt, crdtKinds) }),
      ...(requireKnownUsers !== undefined && { requireKnownUsers: booleanOption('require-known-users', requireKnownUsers) }),
      ...(allowedOrigins !== undefined && { allowedOrigins: listOption(allowedOrigins).map(checkedOrigin) }),
      ...(tokenLifetime !== undefined && { jwtMaxLifetime: durationOption('token-lifetime', tokenLifetime) }),
      ...(tokenIssuer !== undefined && { jwtIssuer: tokenIssuer === '' ? null : tokenIssuer }),
      ...(limits !== undefined && { limits: Object.fromEntries(listOption(limits).map(limitPair)) }),
      ...(quotas !== undefined && { quotas: Object.fromEntries(listOption(quotas).map(quotaPair)) }),
      media: { ...mediaSet('enable-media', options.enableMedia, true), ...mediaSet('disable-media', options.disableMedia, false) },
    },
  };
}

function limitPair(text: string): [name: string, value: number] {
  const [name = '', value = '', ...more] = text.split('=');
  if (more.length > 0 || value === '') throw usageFailure(`--limits must hold pairs such as bodyLength=5000, not "${text}".`);
  return [choiceOption('limits', name, limitNames), wholeOption(`limits ${name}`, value, 1, 1_000_000)];
}

function quotaPair(text: string): [name: string, value: number | null] {
  const [name = '', value = '', ...more] = text.split('=');
  if (more.length > 0 || value === '') throw usageFailure(`--quotas must hold pairs such as userComments=5000 or userComments=off, not "${text}".`);
  const known = choiceOption('quotas', name, quotaNames);
  return [known, value === 'off' ? null : wholeOption(`quotas ${known}`, value, 1, MAX_QUOTA)];
}

function mediaSet(name: string, text: string | undefined, value: boolean): Partial<Record<MediaType, boolean>> {
  return Object.fromEntries(listOption(text ?? '').map((type) => [choiceOption(name, type, mediaTypes), value]));
}

/** Browsers send origins without a path and with the host in lower case; anything else would never match. */
function checkedOrigin(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : 'null';
  if (origin === 'null' || origin !== text) {
    const suggestion = origin === 'null' ? 'https://app.example.com' : origin;
    throw usageFailure(`--allowed-origins must hold origins such as ${suggestion}, not "${text}".`);
  }
  return origin;
}

function describe(environment: Environment): string {
  const { settings } = environment;
  const media = mediaTypes.filter((type) => settings.media[type]);
  return facts([
    ['slug', environment.slug],
    ['name', environment.name],
    ['id', environment.id],
    ['state', state(environment)],
    ['known users required', settings.requireKnownUsers ? 'yes' : 'no'],
    ['allowed origins', settings.allowedOrigins.join(', ') || 'any'],
    ['largest file', `${settings.maxFileSizeMb} MB`],
    ['media types', media.join(', ') || 'none'],
    ['largest shared state', `${settings.maxP2pStateMb} MB`],
    ['shared states are', settings.crdt === 'yjs' ? 'Yjs documents' : 'opaque'],
    ['token lifetime', `at most ${formatDuration(settings.jwtMaxLifetime)}`],
    ['token issuer', settings.jwtIssuer ?? 'any'],
    ['own limits', Object.entries(settings.limits).map(([name, value]) => `${name}=${value}`).join(', ') || 'none'],
    ['own quotas', Object.entries(settings.quotas).map(([name, value]) => `${name}=${value ?? 'off'}`).join(', ') || 'none'],
    ['created', environment.createdAt],
    ['changed', environment.updatedAt],
  ]);
}

const megabytes = (bytes: number): number => Math.ceil(bytes / (1024 * 1024));

function state({ disabled }: Environment): string {
  return disabled ? 'disabled' : 'active';
}
