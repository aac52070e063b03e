import { hash } from 'node:crypto';
import { DELETED } from '../deleted.ts';
import { MEGABYTE } from '../../lib/bytes.ts';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { KeyedLock } from '../../lib/concurrency/keyed-lock.ts';
import { type Environment, limitsOf } from '../../model/environments/environment.ts';
import type { EventType } from '../../model/event.ts';
import { noState, STATE_CONTENT_TYPE, type SharedStateRecord } from '../../model/shared-state.ts';
import type { Transaction } from '../../ports/store.ts';
import { actorUserId, requireBackend, requireRead, requireWrite } from '../access/access.ts';
import { checkRoomId } from '../input/bounds.ts';
import type { Actor } from '../access/actor.ts';
import { type Context, requireCrdt } from '../context.ts';
import { type Documents, type RunExclusive, tooComplex } from './crdt.ts';
import { emitChange } from '../events/emit.ts';
import { STATE_RECORD_KEY, sharedStateOf } from '../records/partitions.ts';
import { putRecord, readRecord } from '../records/record.ts';
import { ensureRoom, touchRoom } from './rooms.ts';
import {
  deleteBytes,
  putBytes,
  readBytes,
  type StagedBytes,
  toBase64,
  WHOLE_BYTES,
  withStagedBytes,
} from './state-bytes.ts';
import { consumeQuota, countUsage } from '../quotas/usage.ts';

/** The precondition of a read or write. */
export interface Precondition {
  /** Whether it holds, given the current ETag and whether the room has a state. */
  (etag: string, exists: boolean): boolean;
}

/** The shared state of a room, or the part of it that a Yjs document lacks. */
export interface SharedState {
  readonly record: SharedStateRecord;
  readonly etag: string;
  /** Null if there is no state, if the client has it already, and after a write. */
  readonly base64: string | null;
  /** Whether the client has it already, or its write was a merge that added nothing. */
  readonly unchanged: boolean;
}

/** A state to write, and the number of merges since it was last replaced or compacted. */
interface NextState {
  readonly bytes: Uint8Array;
  readonly merges: number;
}

/** Merges after which a Yjs state is compacted. */
export const COMPACT_EVERY = 100;

/** Attempts to merge into a state that other processes keep changing. */
const MERGE_ATTEMPTS = 12;

const acceptAny: Precondition = () => true;
const locks = new KeyedLock();

/** The maximum size of a shared state in an environment, in bytes. */
export function maxStateBytes(environment: Environment): number {
  return environment.settings.maxP2pStateMb * MEGABYTE;
}

/** The error for a state that exceeds `maxStateBytes`. */
export function stateTooLarge(environment: Environment): CollabError {
  return new CollabError('payload_too_large', `State too large (max ${environment.settings.maxP2pStateMb}MB)`);
}

/** Whether a write is merged into the Yjs document if the request does not say. */
export function mergesByDefault({ settings }: Environment): boolean {
  return settings.crdt === 'yjs';
}

/**
 * Reads the shared state of a room, which is empty for a room without a state and for an unknown room. Throws
 * `forbidden`, `invalid_request`, and with a state vector `state_too_complex`, `rate_limited`.
 *
 * @param stateVector the state vector of a Yjs document, to get only what that document lacks; null for the whole state
 * @param wantsBytes whether to return the bytes
 */
export async function readState(
  ctx: Context,
  actor: Actor,
  roomId: string,
  stateVector: Uint8Array | null,
  wantsBytes: Precondition,
): Promise<SharedState> {
  requireRead(actor, roomId);
  checkRoomId(roomId, limitsOf(actor.environment));
  const { id } = actor.environment;
  const partition = sharedStateOf(id, roomId);
  if (stateVector === null) return readWhole(ctx, id, partition, wantsBytes);
  const record = await readStateRecord(ctx.store, partition);
  if (!wantsBytes(etagOf(record), record.sizeBytes > 0)) return unchanged(record);
  // Reads the bytes only when it runs, so that waiting requests hold none in memory.
  const readMissing = async (documents: Documents): Promise<SharedState> => {
    const whole = await readWhole(ctx, id, partition, wantsBytes);
    if (whole.base64 === null) return whole;
    return { ...whole, base64: toBase64(await documents.diff(Buffer.from(whole.base64, 'base64'), stateVector)) };
  };
  return requireCrdt(ctx).admit(ctx, actor, 0, (runExclusive) => runExclusive(readMissing));
}

async function readWhole(
  ctx: Context,
  environmentId: string,
  partition: string,
  wantsBytes: Precondition,
): Promise<SharedState> {
  for (;;) {
    const record = await readStateRecord(ctx.store, partition);
    const etag = etagOf(record);
    if (!wantsBytes(etag, record.sizeBytes > 0)) return unchanged(record);
    const base64 = record.sizeBytes === 0 ? null : ((await readBytes(ctx.store, environmentId, partition)) ?? null);
    // All must be from one commit, which reads outside a transaction do not guarantee.
    if (etagOf(await readStateRecord(ctx.store, partition)) !== etag) continue;
    if (base64 === null && record.sizeBytes > 0)
      throw new Error(`the bytes of the shared state in ${partition} are missing`);
    return { record, etag, base64, unchanged: false };
  }
}

/**
 * Replaces the shared state of a room, or merges a Yjs update into it, and creates the room if necessary. Merging an
 * update that the state contains already changes nothing and emits no event. Throws `forbidden`, `invalid_request`,
 * `payload_too_large`, `precondition_failed`, `quota_exceeded`, and when it merges `state_too_complex`, `rate_limited`,
 * `write_conflict`.
 */
export async function writeState(
  ctx: Context,
  actor: Actor,
  roomId: string,
  bytes: Uint8Array,
  merge: boolean,
  precondition: Precondition,
): Promise<SharedState> {
  requireWrite(actor, roomId);
  const { environment } = actor;
  checkRoomId(roomId, limitsOf(environment));
  if (bytes.byteLength === 0) throw new CollabError('invalid_request', 'The state must not be empty');
  requireSize(environment, bytes);
  const partition = sharedStateOf(environment.id, roomId);
  if (merge) {
    return requireCrdt(ctx).admit(ctx, actor, bytes.byteLength, (runExclusive) =>
      locks.run(partition, () => mergeState(ctx, actor, roomId, bytes, precondition, runExclusive)),
    );
  }
  return locks.run(partition, async () => {
    // Before the bytes of a large state are stored in vain.
    if (bytes.byteLength > WHOLE_BYTES) requirePrecondition(precondition, await readStateRecord(ctx.store, partition));
    return withStagedBytes(ctx, environment.id, bytes, (staged) =>
      ctx.store.transact(async (tx) => {
        const before = await readStateRecord(tx, partition);
        requirePrecondition(precondition, before);
        return putState(ctx, tx, actor, roomId, before, { bytes, merges: 0 }, staged);
      }),
    );
  });
}

/** Merges outside the transaction, which may run repeatedly, and commits if the state has not changed since. */
async function mergeState(
  ctx: Context,
  actor: Actor,
  roomId: string,
  update: Uint8Array,
  precondition: Precondition,
  runExclusive: RunExclusive,
): Promise<SharedState> {
  const partition = sharedStateOf(actor.environment.id, roomId);
  for (let attempt = 1; attempt <= MERGE_ATTEMPTS; attempt++) {
    const { before, next } = await runExclusive(async (documents) => {
      const { record, base64 } = await readWhole(ctx, actor.environment.id, partition, acceptAny);
      requirePrecondition(precondition, record);
      return { before: record, next: await mergedState(documents, base64, record.merges, update) };
    });
    requireSize(actor.environment, next.bytes);
    if (before.sizeBytes === next.bytes.byteLength && before.digest === digestOf(next.bytes)) return unchanged(before);
    const written = await withStagedBytes(ctx, actor.environment.id, next.bytes, (staged) =>
      ctx.store.transact(async (tx) => {
        const current = await readStateRecord(tx, partition);
        return etagOf(current) === etagOf(before) ? putState(ctx, tx, actor, roomId, current, next, staged) : null;
      }),
    );
    if (written !== null) return written;
  }
  throw new CollabError(
    'write_conflict',
    'Other writers changed the state each time it was merged: nothing was written, try again',
  );
}

async function mergedState(
  documents: Documents,
  base64: string | null,
  merges: number,
  update: Uint8Array,
): Promise<NextState> {
  const stored = base64 === null ? null : Buffer.from(base64, 'base64');
  const merged = await documents.merge(stored, update);
  if (stored?.equals(merged) === true) return { bytes: merged, merges };
  if (merges + 1 < COMPACT_EVERY) return { bytes: merged, merges: merges + 1 };
  const compacted = await documents.compact(merged);
  if (compacted !== null) return { bytes: compacted, merges: 0 };
  // If the state was too complex before this update, it is merged all the same, or every further update would be
  // refused.
  if (stored === null || (await documents.compact(stored)) !== null) throw tooComplex('time');
  return { bytes: merged, merges: 0 };
}

/**
 * Clears the shared state of a room and returns `{"deleted":true}`, also if there was none. Throws `forbidden`,
 * `invalid_request`.
 */
export async function clearState(ctx: Context, actor: Actor, roomId: string): Promise<string> {
  requireBackend(actor, 'write');
  requireWrite(actor, roomId);
  checkRoomId(roomId, limitsOf(actor.environment));
  const partition = sharedStateOf(actor.environment.id, roomId);
  await locks.run(partition, () =>
    ctx.store.transact(async (tx) => {
      const before = await readStateRecord(tx, partition);
      if (before.sizeBytes === 0) return;
      await deleteBytes(tx, actor.environment.id, partition, before);
      countUsage(tx, actor.environment.id, before.updatedBy, 'stateBytes', -before.sizeBytes);
      // The version continues, so that a client that has an old version can distinguish the next state from it.
      putStateRecord(
        tx,
        actor,
        roomId,
        { ...noState, version: before.version + 1 },
        ctx.clock.now(),
        'p2p.state.cleared',
      );
    }),
  );
  return DELETED;
}

/** Removes the shared state of a room, in the transaction that deletes the room. */
export async function removeState(tx: Transaction, actor: Actor, roomId: string, now: number): Promise<void> {
  const partition = sharedStateOf(actor.environment.id, roomId);
  const before = await readStateRecord(tx, partition);
  if (before.version === 0) return;
  await deleteBytes(tx, actor.environment.id, partition, before);
  tx.delete(partition, STATE_RECORD_KEY);
  countUsage(tx, actor.environment.id, before.updatedBy, 'stateBytes', -before.sizeBytes);
  if (before.sizeBytes > 0)
    emitState(tx, actor, roomId, { ...noState, version: before.version + 1 }, now, 'p2p.state.cleared');
}

/** The JSON text of a state that `GET` returns. */
export function renderState(roomId: string, { record, base64 }: SharedState): string {
  const { version, sizeBytes, updatedAt, updatedBy } = record;
  const rest = JSON.stringify({ version, sizeBytes, contentType: STATE_CONTENT_TYPE, updatedAt, updatedBy });
  return `{"roomId":${JSON.stringify(roomId)},"state":${base64 === null ? 'null' : `"${base64}"`},${rest.slice(1)}`;
}

/** The JSON text that a write returns. That of a merge says whether it added something, so whether the version is its own. */
export function renderWritten(roomId: string, state: SharedState, merged: boolean): string {
  const { version, sizeBytes, updatedAt } = state.record;
  return JSON.stringify({ roomId, version, sizeBytes, updatedAt, ...(merged && { changed: !state.unchanged }) });
}

/** `SharedStateRecord.digest` of a state. */
export const digestOf = (bytes: Uint8Array): string => hash('sha256', bytes, 'hex').slice(0, 16);

const etagOf = ({ version, digest }: SharedStateRecord): string => `"${version}-${digest}"`;

async function readStateRecord(reader: Pick<Transaction, 'get'>, partition: string): Promise<SharedStateRecord> {
  return (await readRecord<SharedStateRecord>(reader, partition, STATE_RECORD_KEY)) ?? noState;
}

function requirePrecondition(precondition: Precondition, record: SharedStateRecord): void {
  if (precondition(etagOf(record), record.sizeBytes > 0)) return;
  throw new CollabError(
    'precondition_failed',
    `The precondition of If-Match or If-None-Match failed: the state is at version ${record.version}`,
  );
}

function requireSize(environment: Environment, bytes: Uint8Array): void {
  if (bytes.byteLength > maxStateBytes(environment)) throw stateTooLarge(environment);
}

function unchanged(record: SharedStateRecord): SharedState {
  return { record, etag: etagOf(record), base64: null, unchanged: true };
}

/** Replaces a state, and creates the room if necessary. */
async function putState(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  roomId: string,
  before: SharedStateRecord,
  { bytes, merges }: NextState,
  staged: StagedBytes,
): Promise<SharedState> {
  const now = ctx.clock.now();
  const updatedAt = timestamp(now);
  const environmentId = actor.environment.id;
  const record: SharedStateRecord = {
    version: before.version + 1,
    sizeBytes: bytes.byteLength,
    digest: digestOf(bytes),
    merges,
    updatedAt,
    updatedBy: actorUserId(actor),
  };
  if (await ensureRoom(tx, environmentId, roomId, updatedAt)) touchRoom(tx, environmentId, roomId, updatedAt);
  await putBytes(tx, environmentId, sharedStateOf(environmentId, roomId), before, staged);
  moveUsage(tx, actor, before, record);
  putStateRecord(tx, actor, roomId, record, now, 'p2p.state.updated');
  return { record, etag: etagOf(record), base64: null, unchanged: false };
}

/**
 * Counts a state for its last writer. A quota refuses only a state that grows: making one smaller is always possible.
 */
function moveUsage(tx: Transaction, actor: Actor, before: SharedStateRecord, after: SharedStateRecord): void {
  countUsage(tx, actor.environment.id, before.updatedBy, 'stateBytes', -before.sizeBytes);
  if (after.sizeBytes > before.sizeBytes) consumeQuota(tx, actor, after.updatedBy, 'stateBytes', after.sizeBytes);
  else countUsage(tx, actor.environment.id, after.updatedBy, 'stateBytes', after.sizeBytes);
}

function putStateRecord(
  tx: Transaction,
  actor: Actor,
  roomId: string,
  record: SharedStateRecord,
  now: number,
  type: EventType,
): void {
  putRecord(tx, sharedStateOf(actor.environment.id, roomId), STATE_RECORD_KEY, record);
  emitState(tx, actor, roomId, record, now, type);
}

/** Emits the event of a change, which does not contain the bytes. */
function emitState(
  tx: Transaction,
  actor: Actor,
  roomId: string,
  { version, sizeBytes }: SharedStateRecord,
  now: number,
  type: EventType,
): void {
  const userId = actorUserId(actor);
  const data = JSON.stringify({ roomId, version, sizeBytes, updatedAt: timestamp(now), updatedBy: userId });
  emitChange(tx, actor.environment, { type, at: now, roomId, threadId: null, userId, via: actor.via, data });
}
