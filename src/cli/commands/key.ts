import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Context } from '../../domain/context.ts';
import { findEnvironment, listEnvironments } from '../../domain/environments/environments.ts';
import { presentKey, presentNewKey } from '../../domain/access/key-view.ts';
import { createKey, listKeys, revokeKey, rotateKey } from '../../domain/access/keys.ts';
import type { KeyCreate } from '../../model/key.ts';
import { addSigningKey, listSigningKeys, type PublicAlgorithm, removeSigningKey, type SigningKeyCreate } from '../../domain/access/signing-keys.ts';
import type { Environment } from '../../model/environment.ts';
import { type KeyScope, MAX_KEY_RATE_LIMIT, type SigningKey } from '../../model/key.ts';
import { addCommand, addGroup, choiceOption, durationOption, wholeOption } from '../command.ts';
import { usageFailure } from '../failure.ts';
import { type Invocation, invocation, withStore } from '../shared/folder.ts';
import { keyRow, newKeyText, presentSigningKey, signingKeyRow, signingKeyText } from './key-view.ts';
import { next, printResult, table } from '../terminal/output.ts';
import { confirmDestruction } from '../terminal/prompt.ts';

const scopes: readonly KeyScope[] = ['full', 'read', 'moderate'];
const algorithms: readonly PublicAlgorithm[] = ['RS256', 'PS256', 'ES256', 'EdDSA'];

interface CreateOptions {
  readonly env: string;
  readonly kind: string;
  readonly name?: string;
  readonly scope?: string;
  readonly rooms?: string;
  readonly expires?: string;
  readonly rateLimit?: string;
  readonly kid?: string;
  readonly alg?: string;
  readonly publicKey?: string;
  readonly jwks?: string;
}

/** Adds `key create|list|revoke|rotate`. */
export function register(program: Command): void {
  const key = addGroup(program, 'key', 'Keys: of backends (secret), of pages (publishable), and those that user tokens are signed with (signing).');

  addCommand(key, 'create', {
    summary: 'Make a key. Its value is shown once.',
    details:
      'A secret key is for a backend. A publishable key names the environment in browsers. A signing key verifies user tokens: ' +
      'a new secret, or with --alg the public key (--public-key) or JWKS address (--jwks) of whoever signs them.',
    examples: [
      'collab key create --env default --kind secret --name ci',
      'collab key create --env default --kind secret --scope read --rooms "docs/*" --expires 90d --rate-limit 1000',
      'collab key create --env default --kind publishable',
      'collab key create --env default --kind signing --alg RS256 --public-key ./idp.pem --kid idp-1',
    ],
  })
    .requiredOption('--env <slug>', 'Environment that it is for.')
    .requiredOption('--kind <kind>', 'secret, publishable or signing.')
    .option('--name <text>', 'What it is used for, to recognise it.')
    .option('--scope <scope>', 'Of a secret key: full, read, or moderate (read, resolve, edit and delete).')
    .option('--rooms <room>', 'Of a secret key: the one room it reaches, or prefix* for those that begin so.')
    .option('--expires <duration>', 'How long it is good for, such as 90d (default: until it is revoked).')
    .option('--rate-limit <n>', 'Of a secret key: requests a minute counted on the key instead of on the address, or unlimited.')
    .option('--kid <kid>', 'Of a signing key: its id in token headers (default: a new one).')
    .option('--alg <algorithm>', `Of a signing key: ${algorithms.join(', ')}.`)
    .option('--public-key <file>', 'Of a signing key: file with a public key, PEM or JWK.')
    .option('--jwks <url>', 'Of a signing key: https address of a JWKS.')
    .action(create);

  addCommand(key, 'list', {
    summary: 'List the keys of an environment, without their values.',
    examples: ['collab key list --env default', 'collab key list --env default --json'],
  })
    .requiredOption('--env <slug>', 'Environment to look at.')
    .action(list);

  addCommand(key, 'revoke <id>', {
    summary: 'Make a key useless from the next request on.',
    details: 'Takes the id that `collab key list` shows; of a signing key that is its kid.',
    examples: ['collab key revoke key_01jq5w8z --yes'],
  })
    .option('--env <slug>', 'Environment of a signing key, where several have one of that kid.')
    .option('--yes', 'Do not ask.')
    .action(revoke);

  addCommand(key, 'rotate <id>', {
    summary: 'Replace a key by a new one with the same rights; both work during the overlap.',
    details:
      'Of a signing secret both verify tokens until the old one is revoked: let your backend sign with the new one, and revoke the old one when the ' +
      'last tokens that it signed have expired.',
    examples: ['collab key rotate key_01jq5w8z', 'collab key rotate key_01jq5w8z --overlap 1h', 'collab key rotate kid_01jq5w8z'],
  })
    .option('--overlap <duration>', 'How long the old one still works; not of a signing secret.', '24h')
    .option('--env <slug>', 'Environment of a signing secret, where several have one of that kid.')
    .action(rotate);
}

async function create(options: CreateOptions, command: Command): Promise<void> {
  const at = invocation(command);
  const kind = choiceOption('kind', options.kind, ['secret', 'publishable', 'signing'] as const);
  refuseForeignOptions(kind, options);
  if (kind === 'signing') return createSigning(at, options);
  const input: KeyCreate = {
    kind,
    ...(options.name !== undefined && { name: options.name }),
    ...(options.scope !== undefined && { scope: choiceOption('scope', options.scope, scopes) }),
    ...(options.rooms !== undefined && { rooms: options.rooms }),
    ...(options.expires !== undefined && { expiresInSeconds: durationOption('expires', options.expires) }),
    ...(options.rateLimit !== undefined && { rateLimit: rateLimitOption(options.rateLimit) }),
  };
  const made = await withStore(at, async (ctx) => createKey(ctx, await findEnvironment(ctx, options.env), input));
  printResult(at.json, presentNewKey(made), () => newKeyText(made));
}

async function createSigning(at: Invocation, options: CreateOptions): Promise<void> {
  const input = signingInput(options);
  const key = await withStore(at, async (ctx) => addSigningKey(ctx, await findEnvironment(ctx, options.env), input));
  printResult(at.json, presentSigningKey(key, true), () => signingKeyText(key));
}

async function list({ env }: { env: string }, command: Command): Promise<void> {
  const at = invocation(command);
  const { keys, signing } = await withStore(at, async (ctx) => {
    const environment = await findEnvironment(ctx, env);
    return { keys: await listKeys(ctx, environment), signing: await listSigningKeys(ctx, environment) };
  });
  const now = Date.now();
  const items = [...keys.map((key) => presentKey(key, now)), ...signing.map((key) => presentSigningKey(key, false))];
  printResult(at.json, { items }, () =>
    table(['id', 'kind', 'name', 'key', 'rights', 'state', 'last used', 'created'], [...keys.map((key) => keyRow(key, now)), ...signing.map(signingKeyRow)]),
  );
}

async function revoke(id: string, options: { env?: string; yes?: true }, command: Command): Promise<void> {
  const at = invocation(command);
  await withStore(at, async (ctx) => {
    const signing = await findSigningKey(ctx, id, options.env);
    const effect = signing === undefined ? 'from the next request on nobody can use it' : 'user tokens signed with it are refused from now on';
    await confirmDestruction({ warning: `This revokes the key ${id}: ${effect}.`, answer: 'yes', yes: options.yes === true });
    if (signing === undefined) await revokeKey(ctx, id);
    else await removeSigningKey(ctx, signing.environment, id);
  });
  printResult(at.json, { revoked: true, id }, () => `Revoked the key ${id}.`);
}

async function rotate(id: string, { overlap, env }: { overlap: string; env?: string }, command: Command): Promise<void> {
  const at = invocation(command);
  const seconds = durationOption('overlap', overlap);
  await withStore(at, async (ctx) => {
    const signing = await findSigningKey(ctx, id, env);
    if (signing !== undefined) return rotateSigning(at, ctx, signing);
    const made = await rotateKey(ctx, id, { overlapSeconds: seconds });
    printResult(at.json, { ...presentNewKey(made), replaces: id }, () => `${newKeyText(made)}\n\nThe key ${id} still works for ${overlap}.`);
  });
}

/** Adds another secret beside one. When the old one may go, only whoever signs with it knows. */
async function rotateSigning(at: Invocation, ctx: Context, { environment, key }: { environment: Environment; key: SigningKey }): Promise<void> {
  if (key.kind !== 'secret') {
    throw usageFailure(
      `${key.kid} is a key of whoever signs the tokens: nothing was made.`,
      `Register their new one beside it: collab key create --env ${environment.slug} --kind signing --alg ${key.alg} …`,
      `When the old tokens have expired: collab key revoke ${key.kid}`,
    );
  }
  const made = await addSigningKey(ctx, environment, { kind: 'secret' });
  printResult(at.json, { ...presentSigningKey(made, true), replaces: key.kid }, () =>
    [signingKeyText(made), '', `${key.kid} still verifies tokens. When the last that it signed have expired:`, next(`collab key revoke ${key.kid} --env ${environment.slug}`)].join('\n'),
  );
}

/** The signing key of a kid with its environment. Several environments may have the same kid: then `env` has to say which. */
async function findSigningKey(ctx: Context, kid: string, env: string | undefined): Promise<{ environment: Environment; key: SigningKey } | undefined> {
  const environments = env === undefined ? await listEnvironments(ctx) : [await findEnvironment(ctx, env)];
  const found = [];
  for (const environment of environments) {
    const key = (await listSigningKeys(ctx, environment)).find((candidate) => candidate.kid === kid);
    if (key !== undefined) found.push({ environment, key });
  }
  if (found.length > 1) throw usageFailure(`Several environments have a signing key ${kid}.`, 'Name the environment with --env <slug>.');
  return found[0];
}

function refuseForeignOptions(kind: 'secret' | 'publishable' | 'signing', options: CreateOptions): void {
  const own: Readonly<Record<typeof kind, readonly string[]>> = {
    secret: ['name', 'scope', 'rooms', 'expires', 'rateLimit'],
    publishable: ['name', 'expires'],
    signing: ['kid', 'alg', 'publicKey', 'jwks'],
  };
  const foreign = Object.keys(options).find((name) => name !== 'env' && name !== 'kind' && !own[kind].includes(name));
  if (foreign === undefined) return;
  const flag = foreign.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw usageFailure(`--${flag} has no meaning for a ${kind} key.`, '`collab key create --help` says which options belong to which kind.');
}

function rateLimitOption(text: string): number | 'unlimited' {
  return text === 'unlimited' ? text : wholeOption('rate-limit', text, 1, MAX_KEY_RATE_LIMIT);
}

function signingInput({ kid, alg, publicKey, jwks }: CreateOptions): SigningKeyCreate {
  const id = kid === undefined ? {} : { kid };
  if (publicKey !== undefined && jwks !== undefined) throw usageFailure('--public-key and --jwks exclude each other.');
  if (publicKey === undefined && jwks === undefined) {
    if (alg !== undefined) throw usageFailure('--alg needs --public-key <file> or --jwks <url>; without it a secret for HS256 is made.');
    return { kind: 'secret', ...id };
  }
  if (alg === undefined) throw usageFailure(`--alg is missing: which of ${algorithms.join(', ')} are the tokens signed with?`);
  const algorithm = choiceOption('alg', alg, algorithms);
  if (jwks !== undefined) return { kind: 'jwks', alg: algorithm, url: jwks, ...id };
  return { kind: 'public', alg: algorithm, key: readFileSync(publicKey ?? '', 'utf8'), ...id };
}
