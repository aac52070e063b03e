import { MEGABYTE } from '../../lib/bytes.ts';
import { CollabError } from '../../model/errors.ts';
import { type Environment, quotasOf } from '../../model/environments/environment.ts';
import type { Quotas } from '../../model/environments/quotas.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import { spendBudget } from './budgets.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { escapeId, usageOf } from '../records/partitions.ts';

/** The stored amounts of an environment, or of a user in it. Deleted content no longer counts. */
export interface Usage {
  readonly comments: number;
  readonly uploadBytes: number;
  readonly stateBytes: number;
}
/** A kind of usage that quotas bound. */
export type UsageKind = keyof Usage;

/** The usage of an environment or user without content. */
export const noUsage: Usage = { comments: 0, uploadBytes: 0, stateBytes: 0 };

/** The key of the total of an environment, in the usage partition. */
export const TOTAL_KEY = 'total';
/** The key of the counts of one user, in the usage partition. */
export const userUsageKey = (userId: string): string => `u/${escapeId(userId)}`;

/** A quota, and the size of its unit in the unit of `Usage`. */
interface QuotaRule {
  readonly name: keyof Quotas;
  readonly unit: number;
  readonly noun: string;
}
const environmentQuotas: Readonly<Record<UsageKind, QuotaRule>> = {
  comments: { name: 'comments', unit: 1, noun: 'comments' },
  uploadBytes: { name: 'uploadMb', unit: MEGABYTE, noun: 'MB of uploads' },
  stateBytes: { name: 'stateMb', unit: MEGABYTE, noun: 'MB of shared states' },
};
const userQuotas: Readonly<Record<UsageKind, QuotaRule>> = {
  comments: { name: 'userComments', unit: 1, noun: 'comments' },
  uploadBytes: { name: 'userUploadMb', unit: MEGABYTE, noun: 'MB of uploads' },
  stateBytes: { name: 'userStateMb', unit: MEGABYTE, noun: 'MB of shared states' },
};

/**
 * Adds the amount of a write to the counts of the environment and of the owning user (null for none), at commit. The
 * commit fails with `quota_exceeded` if a quota would be exceeded. The quotas of the environment apply to all actors,
 * those of a user only to writes by users, since a backend may act for many.
 */
export function consumeQuota(
  tx: Transaction,
  actor: Actor,
  userId: string | null,
  kind: UsageKind,
  amount: number,
): void {
  const { environment } = actor;
  const { id } = environment;
  tx.update(usageOf(id), TOTAL_KEY, (current) => addUsage(current, kind, amount, environment, environmentQuotas[kind]));
  if (userId === null) return;
  const quota = actor.kind === 'user' ? userQuotas[kind] : null;
  tx.update(usageOf(id), userUsageKey(userId), (current) => addUsage(current, kind, amount, environment, quota));
}

/** Adds an amount to the counts without checking quotas, e.g. for a deletion, whose amount is negative. */
export function countUsage(
  tx: Transaction,
  environmentId: string,
  userId: string | null,
  kind: UsageKind,
  amount: number,
): void {
  if (amount === 0) return;
  for (const key of userId === null ? [TOTAL_KEY] : [TOTAL_KEY, userUsageKey(userId)]) {
    tx.update(usageOf(environmentId), key, (current) => addUsage(current, kind, amount));
  }
}

/**
 * Throws `quota_exceeded` if `amount` more would exceed a quota now. Call it before a large body is received, and while
 * it is received. Reads nothing if there is no quota.
 */
export async function requireQuotaLeft(ctx: Context, actor: Actor, kind: UsageKind, amount: number): Promise<void> {
  const { environment } = actor;
  const quotas = quotasOf(environment);
  if (quotas[environmentQuotas[kind].name] !== null) {
    requireWithin(
      environment,
      environmentQuotas[kind],
      (await readUsage(ctx.store, environment.id, TOTAL_KEY))[kind] + amount,
    );
  }
  if (actor.kind === 'user' && quotas[userQuotas[kind].name] !== null) {
    requireWithin(
      environment,
      userQuotas[kind],
      (await readUsage(ctx.store, environment.id, userUsageKey(actor.userId)))[kind] + amount,
    );
  }
}

/** The usage stored under a key: `TOTAL_KEY` or a `userUsageKey`. */
export async function readUsage(reader: Pick<Reader, 'get'>, environmentId: string, key: string): Promise<Usage> {
  return parseUsage(await reader.get(usageOf(environmentId), key));
}

/** Parses a usage record; undefined is no usage. */
export function parseUsage(text: string | undefined): Usage {
  if (text === undefined) return noUsage;
  const first = text.indexOf(' ');
  const second = text.indexOf(' ', first + 1);
  return {
    comments: Number(text.slice(0, first)),
    uploadBytes: Number(text.slice(first + 1, second)),
    stateBytes: Number(text.slice(second + 1)),
  };
}

/**
 * The record of a usage; undefined, which deletes it, if all counts are 0. Compact, since each new comment writes two.
 */
export function renderUsage({ comments, uploadBytes, stateBytes }: Usage): string | undefined {
  return comments === 0 && uploadBytes === 0 && stateBytes === 0
    ? undefined
    : `${comments} ${uploadBytes} ${stateBytes}`;
}

/**
 * Counts a write of a user against `userWritesPerMinute`. Throws `rate_limited` if that is used up. Writes of backends
 * are not counted: these have rate limits of their own.
 */
export async function countWrite(ctx: Context, actor: Actor): Promise<void> {
  const perMinute = quotasOf(actor.environment).userWritesPerMinute;
  if (actor.kind === 'backend' || perMinute === null) return;
  await spendBudget(
    ctx,
    actor,
    {
      name: 'writes',
      perMinute,
      exceededMessage: `A user may write ${perMinute} times a minute (quota userWritesPerMinute)`,
    },
    1,
  );
}

/** A usage record after adding an amount of one kind. Throws `quota_exceeded` if that exceeds the quota. */
function addUsage(
  current: string | undefined,
  kind: UsageKind,
  amount: number,
  environment?: Environment,
  quota: QuotaRule | null = null,
): string | undefined {
  // Fast path for new comments, which call this twice: replace the first count and keep the rest of the text.
  if (kind === 'comments' && current !== undefined) {
    const first = current.indexOf(' ');
    const next = Number(current.slice(0, first)) + amount;
    if (environment !== undefined && quota !== null) requireWithin(environment, quota, next);
    if (next > 0) return `${next}${current.slice(first)}`;
  }
  const usage = parseUsage(current);
  const next = usage[kind] + amount;
  if (environment !== undefined && quota !== null) requireWithin(environment, quota, next);
  return renderUsage({ ...usage, [kind]: next });
}

function requireWithin(environment: Environment, { name, unit, noun }: QuotaRule, next: number): void {
  const maximum = quotasOf(environment)[name];
  if (maximum === null || next <= maximum * unit) return;
  const whose = name.startsWith('user') ? 'a user may have' : 'the environment may hold';
  throw new CollabError(
    'quota_exceeded',
    `The quota ${name} is used up: ${whose} ${maximum} ${noun}. Delete some, or ask the operator to raise ` +
      `it (collab env update <slug> --quotas ${name}=<n>)`,
  );
}
