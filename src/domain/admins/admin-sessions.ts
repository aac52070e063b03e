import { hash, randomBytes } from 'node:crypto';
import { DELETED } from '../deleted.ts';
import { CollabError, isStoreError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { Semaphore } from '../../lib/concurrency/semaphore.ts';
import { type Admin, type AdminSession, LoginSchema, type StoredAdmin } from '../../model/environments/admin.ts';
import { adminKeyOf, findAdmin, presentAdmin } from './admins.ts';
import { appendAuditRecord } from '../audit/audit.ts';
import type { Context } from '../context.ts';
import { ADMIN_FAILURES, ADMIN_SESSIONS, ADMINS } from '../records/partitions.ts';
import { parseRecord, putRecord, readRecord, readRecords } from '../records/record.ts';
import { hashPassword, isOutdated, passwordMatches } from './passwords.ts';
import { InputSchema, validate } from '../input/validate.ts';

const HOUR_MS = 3_600_000;
const LIFETIME_MS = 12 * HOUR_MS;
const IDLE_MS = 2 * HOUR_MS;
/** The precision of `lastUsedAt`: it is written at most this often. */
const LAST_USED_PRECISION_MS = 60_000;

const MAX_FAILURES_PER_HOUR = 20;
/**
 * A hash takes 128 MiB and one core for half a second, so a process computes one at a time, and few logins may wait: N
 * processes compute N at a time. It protects the memory and processors of a machine, which N machines have N times. What
 * must be exact, however many processes there are, is in the store: the sessions, and the failures of an account. The
 * limit per client address is in shared memory (count-request.ts).
 */
const hashing = new Semaphore(1);
const MAX_WAITING = 10;
const RETRY_SECONDS = 5;

const loginInput = new InputSchema(LoginSchema);

/** A new session with its token, which is shown only once. */
export interface OpenedSession {
  readonly token: string;
  readonly expiresAt: string;
  readonly admin: Admin;
}

/** An admin authenticated by a session token. */
export interface AuthenticatedAdmin {
  readonly admin: Admin;
  /** Identifies the session for `logout`. */
  readonly session: string;
}

/**
 * Opens a session for an admin. `input` is the parsed JSON body. An unknown email address takes as long as a wrong
 * password and gets the same response. Throws `invalid_request`, `invalid_login`, and `rate_limited` after 20 failures
 * of an account within an hour or while too many logins wait. The caller enforces limits per client address.
 */
export async function login(ctx: Context, input: unknown): Promise<OpenedSession> {
  const { email, password } = validate(loginInput, input);
  if (hashing.waiting >= MAX_WAITING)
    throw new CollabError('rate_limited', `Too many logins at once. Try again in ${RETRY_SECONDS}s`, RETRY_SECONDS);
  return hashing.run(() => verifyLogin(ctx, adminKeyOf(email), password));
}

/**
 * Authenticates an admin by a session token. Throws `invalid_key` for text that is not a session token,
 * `invalid_session`.
 */
export async function authenticateAdmin(ctx: Context, token: string): Promise<AuthenticatedAdmin> {
  if (!token.startsWith('adm_'))
    throw new CollabError('invalid_key', 'This needs an admin session token (adm_…) from POST /admin/auth/login');
  const key = hash('sha256', token.slice(0, 128), 'base64url');
  const session = await readRecord<AdminSession>(ctx.store, ADMIN_SESSIONS, key);
  if (session === undefined) throw invalidSession();
  const now = ctx.clock.now();
  const admin = await findAdmin(ctx.store, session.adminKey);
  if (hasEnded(session, now) || admin === undefined || !isCurrent(session, admin)) throw invalidSession();
  if (Math.abs(now - Date.parse(session.lastUsedAt)) >= LAST_USED_PRECISION_MS) {
    // Admins must be able to read even while the store cannot be written.
    await updateLastUsed(ctx, key, now).catch((error: unknown) => {
      if (!isStoreError(error)) throw error;
    });
  }
  return { admin: presentAdmin(admin), session: key };
}

/** Ends a session, effective with the next request in every worker. Returns `{"deleted":true}`. */
export async function logout(ctx: Context, { admin, session }: AuthenticatedAdmin): Promise<string> {
  await ctx.store.transact(async (tx) => {
    tx.delete(ADMIN_SESSIONS, session);
    await appendAuditRecord(ctx, tx, null, {
      action: 'admin.logout',
      target: { kind: 'admin', id: admin.id },
      actor: { kind: 'admin', id: admin.id },
    });
  });
  return DELETED;
}

/** Removes expired sessions, and failed logins that are older than an hour. */
export async function sweepAdminSessions(ctx: Context): Promise<void> {
  const now = ctx.clock.now();
  await ctx.store.transact(async (tx) => {
    for (const { key, value } of await readRecords<AdminSession>(tx, ADMIN_SESSIONS)) {
      if (hasEnded(value, now)) tx.delete(ADMIN_SESSIONS, key);
    }
    for (const { key } of await tx.range(ADMIN_FAILURES)) {
      tx.update(ADMIN_FAILURES, key, (current) => renderTimes(recentFailures(current, now)));
    }
  });
}

async function verifyLogin(ctx: Context, key: string, password: string): Promise<OpenedSession> {
  await requireNotLocked(ctx, key);
  const admin = await findAdmin(ctx.store, key);
  const matches = await passwordMatches(ctx, password, admin?.passwordHash ?? null);
  if (admin === undefined || !matches) {
    await recordFailure(ctx, key);
    throw invalidLogin();
  }
  const passwordHash = isOutdated(ctx, admin.passwordHash) ? await hashPassword(ctx, password) : admin.passwordHash;
  return openSession(ctx, key, { ...admin, passwordHash });
}

/** Opens a session. Throws `invalid_login` if the admin was removed or the password changed in the meantime. */
async function openSession(ctx: Context, adminKey: string, verified: StoredAdmin): Promise<OpenedSession> {
  const token = `adm_${randomBytes(32).toString('base64url')}`;
  return ctx.store.transact(async (tx) => {
    const current = await findAdmin(tx, adminKey);
    if (current?.id !== verified.id || current.passwordVersion !== verified.passwordVersion) throw invalidLogin();
    if (current.passwordHash !== verified.passwordHash) putRecord(tx, ADMINS, adminKey, verified);
    const now = ctx.clock.now();
    const at = timestamp(now);
    const session: AdminSession = {
      adminId: verified.id,
      adminKey,
      passwordVersion: verified.passwordVersion,
      createdAt: at,
      lastUsedAt: at,
    };
    putRecord(tx, ADMIN_SESSIONS, hash('sha256', token, 'base64url'), session);
    await appendAuditRecord(ctx, tx, null, {
      action: 'admin.login',
      target: { kind: 'admin', id: verified.id },
      actor: { kind: 'admin', id: verified.id },
    });
    return { token, expiresAt: timestamp(now + LIFETIME_MS), admin: presentAdmin(verified) };
  });
}

/** Updates the time of the last use of a session, unless it was ended in the meantime. */
async function updateLastUsed(ctx: Context, key: string, now: number): Promise<void> {
  await ctx.store.transact(async (tx) => {
    const session = await readRecord<AdminSession>(tx, ADMIN_SESSIONS, key);
    if (session !== undefined) putRecord(tx, ADMIN_SESSIONS, key, { ...session, lastUsedAt: timestamp(now) });
  });
}

function hasEnded({ createdAt, lastUsedAt }: AdminSession, now: number): boolean {
  return Date.parse(createdAt) + LIFETIME_MS <= now || Date.parse(lastUsedAt) + IDLE_MS <= now;
}

/** Whether a session belongs to the admin and to the admin's current password. */
const isCurrent = (session: AdminSession, admin: StoredAdmin): boolean =>
  session.adminId === admin.id && session.passwordVersion === admin.passwordVersion;

async function requireNotLocked(ctx: Context, key: string): Promise<void> {
  const now = ctx.clock.now();
  const failures = recentFailures(await ctx.store.get(ADMIN_FAILURES, key), now);
  const oldest = failures.at(-MAX_FAILURES_PER_HOUR);
  if (oldest === undefined) return;
  const seconds = Math.max(1, Math.ceil((oldest + HOUR_MS - now) / 1000));
  throw new CollabError('rate_limited', `Too many failed logins for this account. Try again in ${seconds}s`, seconds);
}

async function recordFailure(ctx: Context, key: string): Promise<void> {
  const now = ctx.clock.now();
  await ctx.store.transact((tx) =>
    Promise.resolve(tx.update(ADMIN_FAILURES, key, (current) => renderTimes([...recentFailures(current, now), now]))),
  );
}

/** The largest difference between the clock readings of concurrent logins. */
const MAX_CLOCK_SKEW_MS = 60_000;

/**
 * The times of the failures within the last hour, oldest first. A time clearly in the future was recorded before the
 * clock was set back. It is dropped, or the account would stay locked for as long as the clock was moved.
 */
function recentFailures(stored: string | undefined, now: number): readonly number[] {
  const times = stored === undefined ? [] : parseRecord<number[]>(stored);
  return times.filter((time) => time <= now + MAX_CLOCK_SKEW_MS && time + HOUR_MS > now);
}

const renderTimes = (times: readonly number[]): string | undefined =>
  times.length === 0 ? undefined : JSON.stringify(times);

const invalidLogin = (): CollabError => new CollabError('invalid_login', 'Invalid email or password');
const invalidSession = (): CollabError =>
  new CollabError('invalid_session', 'The session is unknown or has ended: log in again');
