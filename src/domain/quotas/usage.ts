import { CollabError } from '../../model/errors.ts';
import { type Environment, quotasOf } from '../../model/environment.ts';
import type { Quotas } from '../../model/quotas.ts';
import type { Reader, Transaction } from '../../ports/store.ts';
import { spendBudget } from './budgets.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { escapeId, usageOf } from '../records/partitions.ts';

/** What is counted of an environment, and of each user in it: of what exists, not of what was ever written. */
export interface Usage {
  readonly comments: number;
  readonly uploadBytes: number;
  readonly stateBytes: number;
}
export type UsageKind = keyof Usage;

export const noUsage: Usage = { comments: 0, uploadBytes: 0, stateBytes: 0 };

/** In the partition of usage: the sum over all. */
export const TOTAL_KEY = 'total';
/** The counts of one user. */
export const userUsageKey = (userId: string): string => `u/${escapeId(userId)}`;

const MEGABYTE = 1024 * 1024;

/** A quota, and what one of its units is in the units of `Usage`. */
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
 * Counts what a write adds, at commit, for the environment and for the user whose it is (null for none). Throws
 * `quota_exceeded` there when it would pass a quota: the environment's for everybody, the user's only where users write
 * themselves, since a backend may act for many.
 */
export function chargeUsage(tx: Transaction, actor: Actor, userId: string | null, kind: UsageKind, amount: number): void {
  const { environment } = actor;
  const { id } = environment;
  tx.update(usageOf(id), TOTAL_KEY, (current) => addUsage(current, kind, amount, environment, environmentQuotas[kind]));
  if (userId === null) return;
  const bound = actor.kind === 'user' ? userQuotas[kind] : null;
  tx.update(usageOf(id), userUsageKey(userId), (current) => addUsage(current, kind, amount, environment, bound));
}

/** Counts a change that no quota refuses, such as a deletion, whose amount is negative. */
export function countUsage(tx: Transaction, environmentId: string, userId: string | null, kind: UsageKind, amount: number): void {
  if (amount === 0) return;
  for (const key of userId === null ? [TOTAL_KEY] : [TOTAL_KEY, userUsageKey(userId)]) {
    tx.update(usageOf(environmentId), key, (current) => addUsage(current, kind, amount));
  }
}

/** Throws `quota_exceeded` when so much more would pass a quota as it stands now: before a large body is received. */
export async function requireQuotaLeft(ctx: Context, actor: Actor, kind: UsageKind, amount: number): Promise<void> {
  const { environment } = actor;
  requireWithin(environment, environmentQuotas[kind], (await readUsage(ctx.store, environment.id, TOTAL_KEY))[kind] + amount);
  if (actor.kind === 'user') requireWithin(environment, userQuotas[kind], (await readUsage(ctx.store, environment.id, userUsageKey(actor.userId)))[kind] + amount);
}

/** What is counted under a key: `TOTAL_KEY` or a `userUsageKey`. */
export async function readUsage(reader: Pick<Reader, 'get'>, environmentId: string, key: string): Promise<Usage> {
  return parseUsage(await reader.get(usageOf(environmentId), key));
}

/** The counts in a record. */
export function parseUsage(text: string | undefined): Usage {
  if (text === undefined) return noUsage;
  const first = text.indexOf(' ');
  const second = text.indexOf(' ', first + 1);
  return { comments: Number(text.slice(0, first)), uploadBytes: Number(text.slice(first + 1, second)), stateBytes: Number(text.slice(second + 1)) };
}

/** The record of counts, none where nothing is counted. Short, for every new comment writes two. */
export function renderUsage({ comments, uploadBytes, stateBytes }: Usage): string | undefined {
  return comments === 0 && uploadBytes === 0 && stateBytes === 0 ? undefined : `${comments} ${uploadBytes} ${stateBytes}`;
}

/**
 * Counts a write that a user sends from a browser. Throws `rate_limited` when the user has used up the minute. Backends
 * have rate limits of their own.
 */
export function countWrite(ctx: Context, actor: Actor): void {
  const perMinute = quotasOf(actor.environment).userWritesPerMinute;
  if (actor.kind === 'backend' || perMinute === null) return;
  spendBudget(ctx, actor, { name: 'writes', perMinute, refusal: `A user may write ${perMinute} times a minute (quota userWritesPerMinute)` }, 1);
}

/** A record of counts with so much more of one kind. Throws `quota_exceeded` when that passes the bound. */
function addUsage(current: string | undefined, kind: UsageKind, amount: number, environment?: Environment, bound: QuotaRule | null = null): string | undefined {
  // Every new comment comes here twice: the first count is changed and the rest kept as it is.
  if (kind === 'comments' && current !== undefined) {
    const first = current.indexOf(' ');
    const next = Number(current.slice(0, first)) + amount;
    if (environment !== undefined && bound !== null) requireWithin(environment, bound, next);
    if (next > 0) return `${next}${current.slice(first)}`;
  }
  const usage = parseUsage(current);
  const next = usage[kind] + amount;
  if (environment !== undefined && bound !== null) requireWithin(environment, bound, next);
  return renderUsage({ ...usage, [kind]: next });
}

function requireWithin(environment: Environment, { name, unit, noun }: QuotaRule, next: number): void {
  const most = quotasOf(environment)[name];
  if (most === null || next <= most * unit) return;
  const whose = name.startsWith('user') ? 'a user may have' : 'the environment may hold';
  throw new CollabError('quota_exceeded', `The quota ${name} is used up: ${whose} ${most} ${noun}. Delete some, or have the operator raise it (collab env update --quotas ${name}=<n>)`);
}
