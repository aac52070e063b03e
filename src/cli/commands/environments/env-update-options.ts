import {
  type CrdtKind,
  type EnvironmentPatch,
  type MediaKind,
  TOKEN_LIFETIME,
} from '../../../model/environments/environment.ts';
import { defaultLimits, type Limits } from '../../../model/environments/limits.ts';
import { defaultQuotas, MAX_QUOTA, type Quotas } from '../../../model/environments/quotas.ts';
import { usageFailure } from '../../failure.ts';
import { choiceOption, durationOption, integerOption, listOption } from '../../option-values.ts';

/** The media types that an environment can accept. */
export const mediaKinds: readonly MediaKind[] = ['image', 'audio', 'video'];

/** The types of shared states. */
export const crdtKinds: readonly CrdtKind[] = ['opaque', 'yjs'];

/** The limits that `--limits` can set. */
export const limitNames = Object.keys(defaultLimits) as (keyof Limits)[];

/** The quotas that `--quotas` can set. */
export const quotaNames = Object.keys(defaultQuotas) as (keyof Quotas)[];

/** The option values of `env update`. */
export interface UpdateOptions {
  readonly name?: string;
  readonly disabled?: boolean;
  readonly maxFileSizeMb?: string;
  readonly enableMedia?: readonly MediaKind[];
  readonly disableMedia?: readonly MediaKind[];
  readonly maxP2pStateMb?: string;
  readonly crdt?: CrdtKind;
  readonly requireKnownUsers?: boolean;
  readonly strict?: boolean;
  readonly allowedOrigins?: string;
  readonly tokenLifetime?: string;
  readonly tokenIssuer?: string;
  readonly limits?: string;
  readonly quotas?: string;
}

/**
 * Converts the options of `env update` into a patch.
 *
 * @throws {Failure} naming an invalid option, or if there are no options
 */
export function patchOf(options: UpdateOptions): EnvironmentPatch {
  if (Object.keys(options).length === 0) {
    throw usageFailure(
      'No option was given, so there is nothing to change.',
      '`collab env update --help` lists the options.',
    );
  }
  const {
    name,
    disabled,
    maxFileSizeMb,
    maxP2pStateMb,
    crdt,
    requireKnownUsers,
    strict,
    allowedOrigins,
    tokenLifetime,
    tokenIssuer,
    limits,
    quotas,
  } = options;
  return {
    ...(name !== undefined && { name }),
    ...(disabled !== undefined && { disabled }),
    settings: {
      ...(maxFileSizeMb !== undefined && {
        maxFileSizeMb: integerOption('max-file-size-mb', maxFileSizeMb, 1, 10_240),
      }),
      ...(maxP2pStateMb !== undefined && { maxP2pStateMb: integerOption('max-p2p-state-mb', maxP2pStateMb, 1, 100) }),
      ...(crdt !== undefined && { crdt }),
      ...(requireKnownUsers !== undefined && { requireKnownUsers }),
      ...(strict !== undefined && { strict }),
      ...(allowedOrigins !== undefined && { allowedOrigins: listOption(allowedOrigins).map(checkedOrigin) }),
      ...(tokenLifetime !== undefined && {
        jwtMaxLifetime: durationOption('token-lifetime', tokenLifetime, TOKEN_LIFETIME),
      }),
      ...(tokenIssuer !== undefined && { jwtIssuer: tokenIssuer === '' ? null : tokenIssuer }),
      ...(limits !== undefined && { limits: Object.fromEntries(listOption(limits).map(limitPair)) }),
      ...(quotas !== undefined && { quotas: Object.fromEntries(listOption(quotas).map(quotaPair)) }),
      media: { ...mediaSet(options.enableMedia, true), ...mediaSet(options.disableMedia, false) },
    },
  };
}

function limitPair(text: string): [name: string, value: number] {
  const [name = '', value = '', ...more] = text.split('=');
  if (more.length > 0 || value === '')
    throw usageFailure(`--limits must contain pairs such as bodyLength=5000, not "${text}".`);
  return [choiceOption('limits', name, limitNames), integerOption(`limits ${name}`, value, 1, 1_000_000)];
}

function quotaPair(text: string): [name: string, value: number | null] {
  const [name = '', value = '', ...more] = text.split('=');
  if (more.length > 0 || value === '')
    throw usageFailure(`--quotas must contain pairs such as userComments=5000 or userComments=off, not "${text}".`);
  const known = choiceOption('quotas', name, quotaNames);
  return [known, value === 'off' ? null : integerOption(`quotas ${known}`, value, 1, MAX_QUOTA)];
}

function mediaSet(types: readonly MediaKind[] = [], value: boolean): Partial<Record<MediaKind, boolean>> {
  return Object.fromEntries(types.map((type) => [type, value]));
}

/**
 * Checks an origin. Browsers send it without a path and with the host in lower case; anything else would never match.
 */
function checkedOrigin(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : 'null';
  if (origin === 'null' || origin !== text) {
    const suggestion = origin === 'null' ? 'https://app.example.com' : origin;
    throw usageFailure(`--allowed-origins must contain origins such as ${suggestion}, not "${text}".`);
  }
  return origin;
}
