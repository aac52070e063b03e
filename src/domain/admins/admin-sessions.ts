import { hash, randomBytes } from 'node:crypto';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import { type Admin, type AdminSession, LoginSchema, type StoredAdmin } from '../../model/admin.ts';
import { adminKeyOf, findAdmin, presentAdmin } from './admins.ts';
import type { Context } from '../context.ts';
import { ADMIN_FAILURES, ADMIN_SESSIONS, ADMINS } from '../records/partitions.ts';
import { hashPassword, isOutdated, passwordMatches } from './passwords.ts';
import { InputSchema, validate } from '../input/validate.ts';

const HOUR_MS = 3_600_000;
const LIFETIME_MS = 12 * HOUR_MS;
const IDLE_MS = 2 * HOUR_MS;
/** How exact `lastUsedAt` is. */
const LAST_USED_PRECISION_MS = 60_000;

const MAX_FAILURES_PER_HOUR = 20;
/** A hash takes 128 MiB and a core for half a second: one at a time in a process, and few that wait. */
const hashing = new Semaphore(1);
const MAX_WAITING = 10;
const BUSY_SECONDS = 5;

const loginInput = new InputSchema(LoginSchema);

/** A session just opened, with its token, which is shown this once. */
export interface OpenedSession {
  readonly token: string;
  readonly expiresAt: string;
  readonly admin: Admin;
}

/** Who speaks with a session. */
export interface AuthenticatedAdmin {
  readonly admin: Admin;
  /** Names the session towards `logout`. */
  readonly session: string;
}

/**
 * Opens a session for an admin. `input` is the parsed JSON body. An unknown address takes as long as a wrong password
 * and is answered alike. Throws `invalid_request`, `invalid_login`, and `rate_limited` after 20 failures of an account
 * within an hour or while too many logins wait. Limits per address of the client are the caller's.
 */
export async function login(ctx: Context, input: unknown): Promise<OpenedSession> {
  const { email, password } = validate(loginInput, input);
  if (hashing.waiting >= MAX_WAITING) throw new CollabError('rate_limited', `Too many logins at once. Try again in ${BUSY_SECONDS}s`, BUSY_SECONDS);
  return hashing.run(() => verifyLogin(ctx, adminKeyOf(email), password));
}

/** Who speaks with a session token. Throws `invalid_key` for what is none, `invalid_session`. */
export async function authenticateAdmin(ctx: Context, token: string): Promise<AuthenticatedAdmin> {
  if (!token.startsWith('adm_')) throw new CollabError('invalid_key', 'This needs the token of an admin session, adm_…, which POST /admin/auth/login gives');
  const key = hash('sha256', token.slice(0, 128), 'base64url');
  const stored = await ctx.store.get(ADMIN_SESSIONS, key);
  if (stored === undefined) throw invalidSession();
  const session = JSON.parse(stored) as AdminSession;
  const now = ctx.clock.now();
  const admin = await findAdmin(ctx.store, session.adminKey);
  if (hasEnded(session, now) || admin === undefined || !isCurrent(session, admin)) throw invalidSession();
  if (Math.abs(now - Date.parse(session.lastUsedAt)) >= LAST_USED_PRECISION_MS) await updateLastUsed(ctx, key, now);
  return { admin: presentAdmin(admin), session: key };
}

/** Ends a session, from the next request on in every worker. Answers `{"deleted":true}`. */
export async function logout(ctx: Context, { session }: AuthenticatedAdmin): Promise<string> {
  await ctx.store.transact((tx) => Promise.resolve(tx.delete(ADMIN_SESSIONS, session)));
  return '{"deleted":true}';
}

/** Removes sessions that have ended by time, and failures that count no longer. */
export async function sweepAdminSessions(ctx: Context): Promise<void> {
  const now = ctx.clock.now();
  await ctx.store.transact(async (tx) => {
    for (const { key, value } of await tx.range(ADMIN_SESSIONS)) {
      if (hasEnded(JSON.parse(value) as AdminSession, now)) tx.delete(ADMIN_SESSIONS, key);
    }
    for (const { key } of await tx.range(ADMIN_FAILURES)) {
      tx.update(ADMIN_FAILURES, key, (current) => renderTimes(recentFailures(current, now)));
    }
  });
}

async function verifyLogin(ctx: Context, key: string, password: string): Promise<OpenedSession> {
  await requireNotLocked(ctx, key);
  const admin = await findAdmin(ctx.store, key);
  const matches = await passwordMatches(password, admin?.passwordHash ?? null);
  if (admin === undefined || !matches) {
    await recordFailure(ctx, key);
    throw invalidLogin();
  }
  const passwordHash = isOutdated(admin.passwordHash) ? await hashPassword(password) : admin.passwordHash;
  return openSession(ctx, key, { ...admin, passwordHash });
}

/** Opens a session unless the admin is gone or has got another password meanwhile. */
async function openSession(ctx: Context, adminKey: string, verified: StoredAdmin): Promise<OpenedSession> {
  const token = `adm_${randomBytes(32).toString('base64url')}`;
  return ctx.store.transact(async (tx) => {
    const current = await findAdmin(tx, adminKey);
    if (current?.id !== verified.id || current.passwordVersion !== verified.passwordVersion) throw invalidLogin();
    if (current.passwordHash !== verified.passwordHash) tx.put(ADMINS, adminKey, JSON.stringify(verified));
    const now = ctx.clock.now();
    const at = timestamp(now);
    const session: AdminSession = { adminId: verified.id, adminKey, passwordVersion: verified.passwordVersion, createdAt: at, lastUsedAt: at };
    tx.put(ADMIN_SESSIONS, hash('sha256', token, 'base64url'), JSON.stringify(session));
    return { token, expiresAt: timestamp(now + LIFETIME_MS), admin: presentAdmin(verified) };
  });
}

/** Moves the last use of a session on, unless it was ended meanwhile. */
async function updateLastUsed(ctx: Context, key: string, now: number): Promise<void> {
  await ctx.store.transact(async (tx) => {
    const stored = await tx.get(ADMIN_SESSIONS, key);
    if (stored === undefined) return;
    const session: AdminSession = { ...(JSON.parse(stored) as AdminSession), lastUsedAt: timestamp(now) };
    tx.put(ADMIN_SESSIONS, key, JSON.stringify(session));
  });
}

function hasEnded({ createdAt, lastUsedAt }: AdminSession, now: number): boolean {
  return Date.parse(createdAt) + LIFETIME_MS <= now || Date.parse(lastUsedAt) + IDLE_MS <= now;
}

const isCurrent = (session: AdminSession, admin: StoredAdmin): boolean => session.adminId === admin.id && session.passwordVersion === admin.passwordVersion;

async function requireNotLocked(ctx: Context, key: string): Promise<void> {
  const now = ctx.clock.now();
  const failures = recentFailures(await ctx.store.get(ADMIN_FAILURES, key), now);
  const leaving = failures.at(-MAX_FAILURES_PER_HOUR);
  if (leaving === undefined) return;
  const seconds = Math.max(1, Math.ceil((leaving + HOUR_MS - now) / 1000));
  throw new CollabError('rate_limited', `Too many failed logins for this account. Try again in ${seconds}s`, seconds);
}

async function recordFailure(ctx: Context, key: string): Promise<void> {
  const now = ctx.clock.now();
  await ctx.store.transact((tx) => Promise.resolve(tx.update(ADMIN_FAILURES, key, (current) => renderTimes([...recentFailures(current, now), now]))));
}

/** How far apart concurrent logins read the clock, at most. */
const MAX_CLOCK_SKEW_MS = 60_000;

/**
 * The failures of the last hour, oldest first. One that lies clearly in the future was counted before the clock was set
 * back: it is dropped, or the account would stay locked for as long as the clock was moved.
 */
function recentFailures(stored: string | undefined, now: number): readonly number[] {
  const times = stored === undefined ? [] : (JSON.parse(stored) as number[]);
  return times.filter((time) => time <= now + MAX_CLOCK_SKEW_MS && time + HOUR_MS > now);
}

const renderTimes = (times: readonly number[]): string | undefined => (times.length === 0 ? undefined : JSON.stringify(times));

const invalidLogin = (): CollabError => new CollabError('invalid_login', 'Invalid email or password');
const invalidSession = (): CollabError => new CollabError('invalid_session', 'The session is unknown or has ended: log in again');
