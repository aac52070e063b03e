import { hash } from 'node:crypto';
import { CollabError } from '../model/errors.ts';
import { timestamp } from '../lib/clock.ts';
import { encryptText, decryptText } from '../lib/encrypted-text.ts';
import type { Admin } from '../model/admin.ts';
import type { Environment } from '../model/environment.ts';
import type { Transaction } from '../ports/store.ts';
import { actorKey } from './access/access.ts';
import type { Actor } from './access/actor.ts';
import type { Context } from './context.ts';
import { ADMIN_IDEMPOTENCY, idempotencyRecordsOf } from './records/partitions.ts';

/** A request that may be repeated; null for one without the header. */
export type Idempotency = {
  /** The value of `Idempotency-Key`, unquoted. */
  readonly key: string;
  readonly method: string;
  /** The raw path, without the query. */
  readonly path: string;
  /** SHA-256 of the raw body, hex. */
  readonly bodyHash: string;
} | null;

/** What a create answers with. */
export interface IdempotentAnswer {
  readonly status: 200 | 201;
  /** JSON text of the whole response. */
  readonly body: string;
  /** Whether an earlier request did the work and this is its answer again. */
  readonly replayed?: true;
}

interface IdempotencyRecord {
  readonly bodyHash: string;
  readonly status: 200 | 201;
  /** JSON text, sealed with the `Idempotency-Key` where the answer may hold a secret (decision 10). */
  readonly body: string;
  readonly createdAt: string;
}

/** What a request does within its transaction, which may run it again. */
type Work = (tx: Transaction) => Promise<Omit<IdempotentAnswer, 'replayed'>>;

/** Where the answers of one credential are kept, and whether as secrets. */
interface AnswerStorage {
  readonly partition: string;
  /** Begins the names of the records. */
  readonly prefix: string;
  /** Names the credential, where the prefix does not: part of what the record is named by. */
  readonly caller: string;
  readonly encrypted: boolean;
}

/** How long an answer is kept for repetition, in milliseconds. */
export const IDEMPOTENCY_TTL_MS = 24 * 3_600_000;

/**
 * The key in an `Idempotency-Key` header, quoted (as the IETF draft has it) or bare.
 * Throws `invalid_request` unless it is 1 to 255 visible ASCII characters.
 */
export function parseIdempotencyKey(header: string): string {
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new CollabError('invalid_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters, bare or in double quotes');
  }
  return key;
}

/**
 * Runs `work` in a transaction, which records its answer in the same commit, or gives the answer of the earlier request
 * of the same credential (a secret key, or a user) with the same key, method and path. Throws `idempotency_key_reused`
 * when that one had another body. Of requests that arrive together one does the work and the others get its answer.
 * Another credential with the same key does its own work: it may be allowed less than the first.
 */
export function withIdempotency(ctx: Context, actor: Actor, request: Idempotency, work: Work): Promise<IdempotentAnswer> {
  // No id of a key or user holds a line break.
  const caller = `${actorKey(actor)}\n`;
  return runOnce(ctx, { partition: idempotencyRecordsOf(actor.environment.id), prefix: '', caller, encrypted: false }, request, work);
}

/**
 * As `once`, for requests of an admin, which another admin's never meet. The answer is stored so that only who sends its
 * `Idempotency-Key` again can read it: it may hold a secret that the store knows only by its hash.
 */
export function withEncryptedIdempotency(ctx: Context, admin: Admin, request: Idempotency, work: Work): Promise<IdempotentAnswer> {
  return runOnce(ctx, { partition: ADMIN_IDEMPOTENCY, prefix: `${admin.id}~`, caller: '', encrypted: true }, request, work);
}

function runOnce(ctx: Context, { partition, prefix, caller, encrypted }: AnswerStorage, request: Idempotency, work: Work): Promise<IdempotentAnswer> {
  if (request === null) return ctx.store.transact(work);
  const key = prefix + hash('sha256', `${caller}${request.method}\n${request.path}\n${request.key}`, 'base64url');
  return ctx.store.transact(async (tx) => {
    const stored = await tx.get(partition, key);
    const earlier = stored === undefined ? null : (JSON.parse(stored) as IdempotencyRecord);
    const now = ctx.clock.now();
    if (earlier !== null && !isStale(earlier, now)) {
      requireSameBody(earlier, request.bodyHash);
      return { status: earlier.status, body: encrypted ? decryptText(earlier.body, request.key, key) : earlier.body, replayed: true };
    }
    const { status, body } = await work(tx);
    const kept = encrypted ? encryptText(body, request.key, key) : body;
    const record: IdempotencyRecord = { bodyHash: request.bodyHash, status, body: kept, createdAt: timestamp(now) };
    tx.put(partition, key, JSON.stringify(record));
    return { status, body };
  });
}

function requireSameBody(earlier: IdempotencyRecord, bodyHash: string): void {
  if (earlier.bodyHash === bodyHash) return;
  throw new CollabError('idempotency_key_reused', 'Idempotency-Key was used before with another body; send a new key with a new request');
}

function isStale(record: IdempotencyRecord, now: number): boolean {
  return Date.parse(record.createdAt) + IDEMPOTENCY_TTL_MS <= now;
}

const SWEEP_SLICE = 500;

/** Forgets the records of an environment that are 24 hours old or older. Returns how many. For the background worker. */
export function sweepIdempotency(ctx: Context, environment: Environment): Promise<number> {
  return sweepPartition(ctx, idempotencyRecordsOf(environment.id));
}

/** As `sweepIdempotency`, the records of all admins, also of those who are none any longer. */
export function sweepAdminIdempotency(ctx: Context): Promise<number> {
  return sweepPartition(ctx, ADMIN_IDEMPOTENCY);
}

async function sweepPartition(ctx: Context, partition: string): Promise<number> {
  let swept = 0;
  let after: string | undefined;
  for (;;) {
    const slice = await ctx.store.range(partition, { after, limit: SWEEP_SLICE });
    const now = ctx.clock.now();
    const stale = slice.filter((entry) => isStale(JSON.parse(entry.value) as IdempotencyRecord, now));
    if (stale.length > 0) swept += await deleteStale(ctx, partition, stale.map((entry) => entry.key));
    if (slice.length < SWEEP_SLICE) return swept;
    after = slice.at(-1)?.key;
  }
}

function deleteStale(ctx: Context, partition: string, keys: readonly string[]): Promise<number> {
  return ctx.store.transact(async (tx) => {
    let forgotten = 0;
    for (const key of keys) {
      const stored = await tx.get(partition, key);
      if (stored === undefined || !isStale(JSON.parse(stored) as IdempotencyRecord, ctx.clock.now())) continue;
      tx.delete(partition, key);
      forgotten++;
    }
    return forgotten;
  });
}
