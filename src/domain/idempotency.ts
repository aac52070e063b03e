import { hash } from 'node:crypto';
import { CollabError, invalidField } from '../model/errors.ts';
import { timestamp } from '../lib/clock.ts';
import { encryptText, decryptText } from '../lib/encrypted-text.ts';
import type { Admin } from '../model/environments/admin.ts';
import type { Environment } from '../model/environments/environment.ts';
import type { Transaction } from '../ports/store.ts';
import { actorKey } from './access/access.ts';
import type { Actor } from './access/actor.ts';
import type { Context } from './context.ts';
import { ADMIN_IDEMPOTENCY, idempotencyRecordsOf } from './records/partitions.ts';
import { parseRecord, putRecord, readRecord } from './records/record.ts';
import { scanSlices } from './records/scan.ts';

/** The idempotency key of a request and what identifies the request; null without an `Idempotency-Key` header. */
export type Idempotency = {
  /** The value of `Idempotency-Key`, unquoted. */
  readonly key: string;
  readonly method: string;
  /** The raw path, without the query. */
  readonly path: string;
  /** SHA-256 of the raw body, hex. */
  readonly bodyHash: string;
} | null;

/** The response to a write that accepts an idempotency key. */
export interface IdempotentResponse {
  readonly status: 200 | 201;
  /** JSON text of the whole response. */
  readonly body: string;
  /** True if this is the stored response of an earlier request. */
  readonly replayed?: true;
}

interface IdempotencyRecord {
  readonly bodyHash: string;
  readonly status: 200 | 201;
  /**
   * JSON text, encrypted with the `Idempotency-Key` if the response may contain a secret
   * (docs/decisions/0010-admin-idempotency.md).
   */
  readonly body: string;
  readonly createdAt: string;
}

/** The write of a request. Its transaction may run it more than once. */
type Work = (tx: Transaction) => Promise<Omit<IdempotentResponse, 'replayed'>>;

/** Where the responses to one caller are stored, and whether encrypted. */
interface ResponseStorage {
  readonly partition: string;
  /** Prefix of the record keys. */
  readonly prefix: string;
  /** Identifies the caller, unless the prefix does; part of the hash in the record key. */
  readonly caller: string;
  readonly encrypted: boolean;
}

/** How long a response is stored, in milliseconds. */
export const IDEMPOTENCY_TTL_MS = 24 * 3_600_000;

/**
 * The key in an `Idempotency-Key` header, quoted (as in the IETF draft) or bare.
 * Throws `invalid_request` unless it is 1 to 255 visible ASCII characters.
 */
export function parseIdempotencyKey(header: string): string {
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw invalidField(
      'Idempotency-Key',
      'must be 1 to 255 visible ASCII characters, bare or in double quotes',
      header,
    );
  }
  return key;
}

/**
 * Runs `work` in a transaction that stores its response in the same commit, or returns the stored response of an
 * earlier request of the same caller (a secret key, or a user) with the same idempotency key, method and path. Throws
 * `idempotency_key_reused` if that request had a different body. Of concurrent equal requests one does the work and the
 * others get its response. Responses are not shared between callers, whose permissions may differ.
 */
export function withIdempotency(
  ctx: Context,
  actor: Actor,
  request: Idempotency,
  work: Work,
): Promise<IdempotentResponse> {
  // Ids of keys and users contain no line breaks.
  const caller = `${actorKey(actor)}\n`;
  return runOnce(
    ctx,
    { partition: idempotencyRecordsOf(actor.environment.id), prefix: '', caller, encrypted: false },
    request,
    work,
  );
}

/** Whether `withIdempotency` would return the stored response of an earlier request, or refuse another body. */
export async function hasStoredResponse(ctx: Context, actor: Actor, request: Idempotency): Promise<boolean> {
  if (request === null) return false;
  const key = recordKey('', `${actorKey(actor)}\n`, request);
  const stored = await readRecord<IdempotencyRecord>(ctx.store, idempotencyRecordsOf(actor.environment.id), key);
  return stored !== undefined && !isStale(stored, ctx.clock.now());
}

/**
 * As `withIdempotency`, for requests of an admin. The response is encrypted with the `Idempotency-Key`, since it may
 * contain a secret of which the store has only the hash.
 */
export function withEncryptedIdempotency(
  ctx: Context,
  admin: Admin,
  request: Idempotency,
  work: Work,
): Promise<IdempotentResponse> {
  return runOnce(
    ctx,
    { partition: ADMIN_IDEMPOTENCY, prefix: `${admin.id}~`, caller: '', encrypted: true },
    request,
    work,
  );
}

function runOnce(
  ctx: Context,
  { partition, prefix, caller, encrypted }: ResponseStorage,
  request: Idempotency,
  work: Work,
): Promise<IdempotentResponse> {
  if (request === null) return ctx.store.transact(work);
  const key = recordKey(prefix, caller, request);
  return ctx.store.transact(async (tx) => {
    const earlier = await readRecord<IdempotencyRecord>(tx, partition, key);
    const now = ctx.clock.now();
    if (earlier !== undefined && !isStale(earlier, now)) {
      requireSameBody(earlier, request.bodyHash);
      return {
        status: earlier.status,
        body: encrypted ? decryptText(earlier.body, request.key, key) : earlier.body,
        replayed: true,
      };
    }
    const { status, body } = await work(tx);
    const storedBody = encrypted ? encryptText(body, request.key, key) : body;
    const record: IdempotencyRecord = {
      bodyHash: request.bodyHash,
      status,
      body: storedBody,
      createdAt: timestamp(now),
    };
    putRecord(tx, partition, key, record);
    return { status, body };
  });
}

function recordKey(prefix: string, caller: string, { method, path, key }: NonNullable<Idempotency>): string {
  return prefix + hash('sha256', `${caller}${method}\n${path}\n${key}`, 'base64url');
}

function requireSameBody(earlier: IdempotencyRecord, bodyHash: string): void {
  if (earlier.bodyHash === bodyHash) return;
  throw new CollabError(
    'idempotency_key_reused',
    'Idempotency-Key was used before with another body; send a new key with a new request',
  );
}

function isStale(record: IdempotencyRecord, now: number): boolean {
  return Date.parse(record.createdAt) + IDEMPOTENCY_TTL_MS <= now;
}

/**
 * Deletes the records of an environment that are at least 24 hours old and returns their number. For the background
 * worker.
 */
export function sweepIdempotency(ctx: Context, environment: Environment): Promise<number> {
  return sweepPartition(ctx, idempotencyRecordsOf(environment.id));
}

/** As `sweepIdempotency`, for the records of all admins, including removed ones. */
export function sweepAdminIdempotency(ctx: Context): Promise<number> {
  return sweepPartition(ctx, ADMIN_IDEMPOTENCY);
}

async function sweepPartition(ctx: Context, partition: string): Promise<number> {
  let swept = 0;
  for await (const slice of scanSlices(ctx.store, partition)) {
    const now = ctx.clock.now();
    const stale = slice.filter((entry) => isStale(parseRecord<IdempotencyRecord>(entry.value), now));
    if (stale.length > 0)
      swept += await deleteStale(
        ctx,
        partition,
        stale.map((entry) => entry.key),
      );
  }
  return swept;
}

function deleteStale(ctx: Context, partition: string, keys: readonly string[]): Promise<number> {
  return ctx.store.transact(async (tx) => {
    let deleted = 0;
    for (const key of keys) {
      const stored = await readRecord<IdempotencyRecord>(tx, partition, key);
      if (stored === undefined || !isStale(stored, ctx.clock.now())) continue;
      tx.delete(partition, key);
      deleted++;
    }
    return deleted;
  });
}
