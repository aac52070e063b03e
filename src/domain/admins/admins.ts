import { hash } from 'node:crypto';
import { CollabError, invalidField } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { newId } from '../../lib/ids.ts';
import type { Admin, StoredAdmin } from '../../model/environments/admin.ts';
import type { Reader } from '../../ports/store.ts';
import { isEmailAddress } from '../input/bounds.ts';
import { appendAuditRecord } from '../audit/audit.ts';
import type { Context } from '../context.ts';
import { ADMIN_FAILURES, ADMINS } from '../records/partitions.ts';
import { putRecord, readRecord, readRecords } from '../records/record.ts';
import { checkPassword, hashPassword } from './passwords.ts';

const MAX_EMAIL_LENGTH = 320;

/** Creates an admin. Throws `invalid_request`, `email_taken`. */
export async function createAdmin(ctx: Context, email: string, password: string): Promise<Admin> {
  const address = normaliseEmail(email);
  if (address.length > MAX_EMAIL_LENGTH || !isEmailAddress(address))
    throw invalidField('email', 'must be an email address', address);
  checkPassword(password);
  const passwordHash = await hashPassword(ctx, password);
  const key = adminKeyOf(email);
  return ctx.store.transact(async (tx) => {
    if ((await tx.get(ADMINS, key)) !== undefined)
      throw new CollabError('email_taken', `There is an admin with the email address ${address} already`);
    const now = ctx.clock.now();
    const admin: StoredAdmin = {
      id: newId('admin_', now),
      email: address,
      role: 'admin',
      createdAt: timestamp(now),
      passwordHash,
      passwordVersion: 1,
    };
    putRecord(tx, ADMINS, key, admin);
    await appendAuditRecord(ctx, tx, null, { action: 'admin.create', target: { kind: 'admin', id: admin.id } });
    return presentAdmin(admin);
  });
}

/** All admins, oldest first. */
export async function listAdmins(ctx: Context): Promise<Admin[]> {
  const admins = await readRecords<StoredAdmin>(ctx.store, ADMINS);
  return admins.map(({ value }) => presentAdmin(value)).toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * Sets the password of an admin, ends all their sessions and clears their failed logins. Throws `invalid_request`,
 * `admin_not_found`.
 */
export async function setAdminPassword(ctx: Context, email: string, password: string): Promise<Admin> {
  checkPassword(password);
  const passwordHash = await hashPassword(ctx, password);
  const key = adminKeyOf(email);
  return ctx.store.transact(async (tx) => {
    const admin = await requireAdmin(tx, key, email);
    putRecord(tx, ADMINS, key, { ...admin, passwordHash, passwordVersion: admin.passwordVersion + 1 });
    tx.delete(ADMIN_FAILURES, key);
    await appendAuditRecord(ctx, tx, null, { action: 'admin.password', target: { kind: 'admin', id: admin.id } });
    return presentAdmin(admin);
  });
}

/** Removes an admin, which ends all their sessions. Throws `admin_not_found`. */
export async function removeAdmin(ctx: Context, email: string): Promise<Admin> {
  const key = adminKeyOf(email);
  return ctx.store.transact(async (tx) => {
    const admin = await requireAdmin(tx, key, email);
    tx.delete(ADMINS, key);
    await appendAuditRecord(ctx, tx, null, { action: 'admin.remove', target: { kind: 'admin', id: admin.id } });
    return presentAdmin(admin);
  });
}

/**
 * The key under which an email address has its admin and its failed logins; the latter exist for unknown addresses too.
 */
export function adminKeyOf(email: string): string {
  return hash('sha256', normaliseEmail(email), 'base64url');
}

/** The admin stored under a key of `adminKeyOf`, or undefined. */
export function findAdmin(reader: Pick<Reader, 'get'>, key: string): Promise<StoredAdmin | undefined> {
  return readRecord<StoredAdmin>(reader, ADMINS, key);
}

/** The public view of a stored admin. */
export function presentAdmin({ id, email, role, createdAt }: StoredAdmin): Admin {
  return { id, email, role, createdAt };
}

async function requireAdmin(reader: Pick<Reader, 'get'>, key: string, email: string): Promise<StoredAdmin> {
  const admin = await findAdmin(reader, key);
  if (admin === undefined)
    throw new CollabError('admin_not_found', `No admin has the email address ${email.slice(0, MAX_EMAIL_LENGTH)}`);
  return admin;
}

const normaliseEmail = (email: string): string => email.normalize('NFKC').trim().toLowerCase();
