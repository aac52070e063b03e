import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Context } from '../../../domain/context.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { presentKey, presentNewKey } from '../../../domain/access/key-view.ts';
import { createKey, findKey, listKeys, revokeKey, rotateKey } from '../../../domain/access/keys.ts';
import type { KeyCreate } from '../../../model/environments/key.ts';
import {
  addSigningKey,
  listSigningKeys,
  type PublicAlgorithm,
  removeSigningKey,
  type SigningKeyCreate,
} from '../../../domain/access/signing-keys.ts';
import type { Environment } from '../../../model/environments/environment.ts';
import {
  type KeyScope,
  MAX_KEY_RATE_LIMIT,
  MAX_KEY_SECONDS,
  type SigningKey,
} from '../../../model/environments/key.ts';
import { addCommand, addGroup } from '../../command.ts';
import { choiceFlag, durationOption, integerOption } from '../../option-values.ts';
import { usageFailure } from '../../failure.ts';
import { environmentWith } from '../../shared/environment-with.ts';
import { withStore } from '../../shared/open-store.ts';
import { type Invocation, invocationOf } from '../../shared/invocation.ts';
import { keyRow, newKeyText, presentSigningKey, signingKeyRow, signingKeyText } from './key-view.ts';
import { nextSteps, printResult, table } from '../../terminal/output.ts';
import { confirmDestruction } from '../../terminal/prompt.ts';

const kinds = ['secret', 'publishable', 'signing'] as const;
const scopes: readonly KeyScope[] = ['full', 'read', 'moderate'];
const algorithms: readonly PublicAlgorithm[] = ['RS256', 'PS256', 'ES256', 'EdDSA'];

interface CreateOptions {
  readonly env: string;
  readonly kind: (typeof kinds)[number];
  readonly name?: string;
  readonly scope?: KeyScope;
  readonly rooms?: string;
  readonly expires?: string;
  readonly rateLimit?: string;
  readonly kid?: string;
  readonly alg?: PublicAlgorithm;
  readonly publicKey?: string;
  readonly jwks?: string;
}

/** Adds `key create|list|revoke|rotate`. */
export function register(program: Command): void {
  const key = addGroup(
    program,
    'key',
    'Keys: for backends (secret), for web pages (publishable), and for signing user tokens (signing).',
  );

  addCommand(key, 'create', {
    summary: 'Create a key. Its value is shown once.',
    details:
      'A secret key is for a backend. A publishable key identifies the environment in browsers. A signing key verifies user tokens: ' +
      'a new secret, or with --alg the public key (--public-key) or JWKS address (--jwks) of your identity provider.',
    examples: [
      'collab key create --env default --kind secret --name ci',
      'collab key create --env default --kind secret --scope read --rooms "docs/*" --expires 90d --rate-limit 1000',
      'collab key create --env default --kind publishable',
      'collab key create --env default --kind signing --alg RS256 --public-key ./idp.pem --kid idp-1',
    ],
  })
    .requiredOption('--env <slug>', 'Environment of the key.')
    .addOption(choiceFlag('--kind <kind>', 'What the key is for.', kinds).makeOptionMandatory())
    .option('--name <text>', 'Name by which you recognise the key.')
    .addOption(
      choiceFlag(
        '--scope <scope>',
        'Secret keys: permissions; `moderate` allows reading, resolving, editing and deleting (default: full).',
        scopes,
      ),
    )
    .option('--rooms <room>', 'Secret keys: the only room it can access, or prefix* for all rooms with that prefix.')
    .option('--expires <duration>', 'Lifetime, such as 90d (default: until it is revoked).')
    .option(
      '--rate-limit <n>',
      'Secret keys: requests per minute, counted per key instead of per address, or unlimited.',
    )
    .option('--kid <kid>', 'Signing keys: its id in token headers (default: a new one).')
    .addOption(choiceFlag('--alg <algorithm>', 'Signing keys: algorithm that the tokens are signed with.', algorithms))
    .option('--public-key <file>', 'Signing keys: file with a public key, PEM or JWK.')
    .option('--jwks <url>', 'Signing keys: https address of a JWKS.')
    .action(create);

  addCommand(key, 'list', {
    summary: 'List the keys of an environment, without their values.',
    examples: ['collab key list --env default', 'collab key list --env default --json'],
  })
    .requiredOption('--env <slug>', 'Environment of the keys.')
    .action(list);

  addCommand(key, 'revoke <id>', {
    summary: 'Revoke a key. It is refused from the next request on.',
    details: '`collab key list` shows the ids. The id of a signing key is its kid.',
    examples: ['collab key revoke key_01jq5w8z --yes'],
  })
    .option('--env <slug>', 'Environment of a signing key, if several environments have one with this kid.')
    .option('--yes', 'Do not ask.')
    .action(revoke);

  addCommand(key, 'rotate <id>', {
    summary: 'Replace a key with a new one that has the same rights. Both work during the overlap.',
    details:
      'An old signing secret verifies tokens until you revoke it: let your backend sign with the new one, ' +
      'and revoke the old one when the ' +
      'last tokens that it signed have expired.',
    examples: [
      'collab key rotate key_01jq5w8z',
      'collab key rotate key_01jq5w8z --overlap 1h',
      'collab key rotate kid_01jq5w8z',
    ],
  })
    .option('--overlap <duration>', 'How long the old key still works; does not apply to signing secrets.', '24h')
    .option('--env <slug>', 'Environment of a signing secret, if several environments have one with this kid.')
    .action(rotate);
}

async function create(options: CreateOptions, command: Command): Promise<void> {
  const at = invocationOf(command);
  const { kind } = options;
  refuseInapplicableOptions(kind, options);
  if (kind === 'signing') return createSigning(at, options);
  const input: KeyCreate = {
    kind,
    ...(options.name !== undefined && { name: options.name }),
    ...(options.scope !== undefined && { scope: options.scope }),
    ...(options.rooms !== undefined && { rooms: options.rooms }),
    ...(options.expires !== undefined && {
      expiresInSeconds: durationOption('expires', options.expires, { min: 1, max: MAX_KEY_SECONDS }),
    }),
    ...(options.rateLimit !== undefined && { rateLimit: rateLimitOption(options.rateLimit) }),
  };
  const created = await withStore(at, async (ctx) => createKey(ctx, await findEnvironment(ctx, options.env), input));
  printResult(at.json, presentNewKey(created), () => newKeyText(created));
}

async function createSigning(at: Invocation, options: CreateOptions): Promise<void> {
  const input = signingInput(options);
  const key = await withStore(at, async (ctx) => addSigningKey(ctx, await findEnvironment(ctx, options.env), input));
  printResult(at.json, presentSigningKey(key, true), () => signingKeyText(key));
}

async function list({ env }: { env: string }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const { keys, signing } = await withStore(at, async (ctx) => {
    const environment = await findEnvironment(ctx, env);
    return { keys: await listKeys(ctx, environment), signing: await listSigningKeys(ctx, environment) };
  });
  const now = Date.now();
  const items = [...keys.map((key) => presentKey(key, now)), ...signing.map((key) => presentSigningKey(key, false))];
  printResult(at.json, { items }, () =>
    table(
      ['id', 'kind', 'name', 'key', 'rights', 'state', 'last used', 'created'],
      [...keys.map((key) => keyRow(key, now)), ...signing.map(signingKeyRow)],
    ),
  );
}

async function revoke(id: string, options: { env?: string; yes?: true }, command: Command): Promise<void> {
  const at = invocationOf(command);
  const done = await withStore(at, async (ctx) => {
    const signing = await findSigningKey(ctx, id, options.env);
    const revokedAt = signing === undefined ? (await findKey(ctx, id)).revokedAt : null;
    if (revokedAt !== null) return `The key ${id} was revoked already, at ${revokedAt}. Nothing was changed.`;
    const effect =
      signing === undefined
        ? 'requests that use it are refused from now on'
        : 'user tokens signed with it are refused from now on';
    await confirmDestruction({
      warning: `This revokes the key ${id}: ${effect}.`,
      answer: 'yes',
      yes: options.yes === true,
    });
    if (signing === undefined) await revokeKey(ctx, id);
    else await removeSigningKey(ctx, signing.environment, id);
    return `Revoked the key ${id}.`;
  });
  printResult(at.json, { revoked: true, id }, () => done);
}

async function rotate(
  id: string,
  { overlap, env }: { overlap: string; env?: string },
  command: Command,
): Promise<void> {
  const at = invocationOf(command);
  const seconds = durationOption('overlap', overlap, { min: 1, max: MAX_KEY_SECONDS });
  await withStore(at, async (ctx) => {
    const signing = await findSigningKey(ctx, id, env);
    if (signing !== undefined) return rotateSigning(at, ctx, signing);
    const created = await rotateKey(ctx, id, { overlapSeconds: seconds });
    printResult(
      at.json,
      { ...presentNewKey(created), replaces: id },
      () =>
        `${newKeyText(created)}\n\nThe key ${id} still works for ${overlap}, or until it expires if that is earlier.`,
    );
  });
}

/** Adds a second secret. The old one stays, because only the operator knows when its last token has expired. */
async function rotateSigning(
  at: Invocation,
  ctx: Context,
  { environment, found: key }: { readonly environment: Environment; readonly found: SigningKey },
): Promise<void> {
  if (key.kind !== 'secret') {
    throw usageFailure(
      `${key.kid} is the public key of an identity provider, which Collab cannot rotate. Nothing was changed.`,
      `Add the provider's new key: \`collab key create --env ${environment.slug} --kind signing --alg ${key.alg} …\``,
      `When the old tokens have expired: \`collab key revoke ${key.kid}\``,
    );
  }
  const created = await addSigningKey(ctx, environment, { kind: 'secret' });
  printResult(at.json, { ...presentSigningKey(created, true), replaces: key.kid }, () =>
    [
      signingKeyText(created),
      '',
      `${key.kid} still verifies tokens. When the last tokens that it signed have expired:`,
      nextSteps(`collab key revoke ${key.kid} --env ${environment.slug}`),
    ].join('\n'),
  );
}

/** Finds the signing key with a kid, and its environment. If several environments have that kid, `env` is required. */
function findSigningKey(
  ctx: Context,
  kid: string,
  env: string | undefined,
): Promise<{ readonly environment: Environment; readonly found: SigningKey } | undefined> {
  return environmentWith(ctx, env, `signing key ${kid}`, async (environment) =>
    (await listSigningKeys(ctx, environment)).find((key) => key.kid === kid),
  );
}

function refuseInapplicableOptions(kind: CreateOptions['kind'], options: CreateOptions): void {
  const applicable: Readonly<Record<typeof kind, readonly string[]>> = {
    secret: ['name', 'scope', 'rooms', 'expires', 'rateLimit'],
    publishable: ['name', 'expires'],
    signing: ['kid', 'alg', 'publicKey', 'jwks'],
  };
  const inapplicable = Object.keys(options).find(
    (name) => name !== 'env' && name !== 'kind' && !applicable[kind].includes(name),
  );
  if (inapplicable === undefined) return;
  const flag = inapplicable.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw usageFailure(
    `--${flag} does not apply to ${kind} keys.`,
    '`collab key create --help` shows which options apply to which kind.',
  );
}

function rateLimitOption(text: string): number | 'unlimited' {
  return text === 'unlimited' ? text : integerOption('rate-limit', text, 1, MAX_KEY_RATE_LIMIT);
}

function signingInput({ kid, alg, publicKey, jwks }: CreateOptions): SigningKeyCreate {
  const id = kid === undefined ? {} : { kid };
  if (publicKey !== undefined && jwks !== undefined)
    throw usageFailure('--public-key and --jwks cannot be used together.');
  if (publicKey === undefined && jwks === undefined) {
    if (alg !== undefined)
      throw usageFailure(
        '--alg needs --public-key <file> or --jwks <url>. Without --alg, a secret for HS256 is created.',
      );
    return { kind: 'secret', ...id };
  }
  if (alg === undefined)
    throw usageFailure(
      `--alg is missing: give the algorithm that the tokens are signed with, one of ${algorithms.join(', ')}.`,
    );
  if (jwks !== undefined) return { kind: 'jwks', alg, url: jwks, ...id };
  return { kind: 'public', alg, key: readFileSync(publicKey ?? '', 'utf8'), ...id };
}
