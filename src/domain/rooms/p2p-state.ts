import { hash } from 'node:crypto';
import { CollabError } from '../../model/errors.ts';
import { timestamp } from '../../lib/clock.ts';
import { KeyedLock } from '../../lib/keyed-lock.ts';
import { type Environment, limitsOf } from '../../model/environment.ts';
import type { EventType } from '../../model/event.ts';
import { noState, P2P_CONTENT_TYPE, type P2pRecord } from '../../model/p2p-state.ts';
import type { Transaction } from '../../ports/store.ts';
import { actingUserId, requireBackend, requireChange, requireRead, requireWrite } from '../access/access.ts';
import { checkId } from '../input/bounds.ts';
import type { Actor } from '../access/actor.ts';
import { type Context, requireCrdt } from '../context.ts';
import { type Documents, type RunExclusive, tooComplex } from './crdt.ts';
import { emitChange } from '../events/emit.ts';
import { P2P_BYTES_KEY, P2P_RECORD_KEY, p2pOf } from '../records/partitions.ts';
import { ensureRoom, touchRoom } from './rooms.ts';
import { chargeUsage, countUsage } from '../quotas/usage.ts';

/** What is asked of a state before it is read or written. */
export interface Precondition {
  /** Whether to go on, given the present ETag and whether there is a state at all. */
  (etag: string, exists: boolean): boolean;
}

/** The shared state of a room, or what it has that a Yjs document lacks. */
export interface P2pState {
  readonly record: P2pRecord;
  readonly etag: string;
  /** Null when there is none, and when the caller has it already. */
  readonly base64: string | null;
  /** Whether the caller has it already. */
  readonly unchanged: boolean;
}

/** The bytes that a state is to have, and how many merges have led to them since it was last replaced or compacted. */
interface NextState {
  readonly bytes: Uint8Array;
  readonly merges: number;
}

/** Merges after which a Yjs state is brought back to what the document is. */
export const COMPACT_EVERY = 100;

/** Tries to merge into a state that writers of other processes change meanwhile. */
const MERGE_ATTEMPTS = 12;

const MEGABYTE = 1024 * 1024;
const acceptAny: Precondition = () => true;
const locks = new KeyedLock();

/** Most bytes of a shared state in an environment. */
export function maxStateBytes(environment: Environment): number {
  return environment.settings.maxP2pStateMb * MEGABYTE;
}

/** The refusal of a larger state. */
export function stateTooLarge(environment: Environment): CollabError {
  return new CollabError('payload_too_large', `State too large (max ${environment.settings.maxP2pStateMb}MB)`);
}

/** Whether writes are merged into Yjs documents where the request doesn't say so. */
export function mergesByDefault({ settings }: Environment): boolean {
  return settings.crdt === 'yjs';
}

/**
 * The shared state of a room; none for a room that has no state or does not exist. Throws `forbidden`, `invalid_request`,
 * and with a state vector `state_too_complex`, `rate_limited`.
 *
 * @param stateVector of a Yjs document, to get only what it lacks
 * @param wanted whether the bytes are, given the ETag
 */
export async function readState(ctx: Context, actor: Actor, roomId: string, stateVector: Uint8Array | null, wanted: Precondition): Promise<P2pState> {
  requireRead(actor, roomId);
  checkId('roomId', roomId, limitsOf(actor.environment));
  const partition = p2pOf(actor.environment.id, roomId);
  if (stateVector === null) return readWhole(ctx, partition, wanted);
  const record = await readRecord(ctx.store, partition);
  if (!wanted(etagOf(record), record.sizeBytes > 0)) return unchanged(record);
  // The bytes are read in turn, so that those who wait hold none.
  const lacking = async (documents: Documents): Promise<P2pState> => {
    const whole = await readWhole(ctx, partition, wanted);
    if (whole.base64 === null) return whole;
    return { ...whole, base64: toBase64(await documents.diff(Buffer.from(whole.base64, 'base64'), stateVector)) };
  };
  return requireCrdt(ctx).admit(ctx, actor, 0, (inTurn) => inTurn(lacking));
}

async function readWhole(ctx: Context, partition: string, wanted: Precondition): Promise<P2pState> {
  for (;;) {
    const record = await readRecord(ctx.store, partition);
    const etag = etagOf(record);
    if (!wanted(etag, record.sizeBytes > 0)) return unchanged(record);
    const base64 = record.sizeBytes === 0 ? null : ((await ctx.store.get(partition, P2P_BYTES_KEY)) ?? null);
    // Both must be of one commit, and reads outside of a transaction need not be.
    if (etagOf(await readRecord(ctx.store, partition)) === etag) return { record, etag, base64, unchanged: false };
  }
}

/**
 * Replaces the shared state of a room, or merges a Yjs update into it, in a room that is made if it is new. Merging what
 * the state has already changes nothing and sends no event. Throws `forbidden`, `invalid_request`, `payload_too_large`,
 * `precondition_failed`, and when it merges `state_too_complex`, `rate_limited`, `write_conflict`.
 */
export async function writeState(ctx: Context, actor: Actor, roomId: string, bytes: Uint8Array, merge: boolean, precondition: Precondition): Promise<P2pState> {
  requireWrite(actor, roomId);
  const { environment } = actor;
  checkId('roomId', roomId, limitsOf(environment));
  if (bytes.byteLength === 0) throw new CollabError('invalid_request', 'The state must not be empty');
  requireSize(environment, bytes);
  const partition = p2pOf(environment.id, roomId);
  if (merge) {
    return requireCrdt(ctx).admit(ctx, actor, bytes.byteLength, (inTurn) => locks.run(partition, () => mergeState(ctx, actor, roomId, bytes, precondition, inTurn)));
  }
  return locks.run(partition, () =>
    ctx.store.transact(async (tx) => {
      const before = await readRecord(tx, partition);
      requirePrecondition(precondition, before);
      return putState(ctx, tx, actor, roomId, before, { bytes, merges: 0 });
    }),
  );
}

/** Merges outside of the commit, which can be repeated, and commits when the state is still the one that was merged into. */
async function mergeState(ctx: Context, actor: Actor, roomId: string, update: Uint8Array, precondition: Precondition, inTurn: RunExclusive): Promise<P2pState> {
  const partition = p2pOf(actor.environment.id, roomId);
  for (let attempt = 1; attempt <= MERGE_ATTEMPTS; attempt++) {
    const { before, next } = await inTurn(async (documents) => {
      const { record, base64 } = await readWhole(ctx, partition, acceptAny);
      requirePrecondition(precondition, record);
      return { before: record, next: await mergedState(documents, base64, record.merges, update) };
    });
    requireSize(actor.environment, next.bytes);
    const written = await ctx.store.transact(async (tx) => {
      const present = await readRecord(tx, partition);
      if (etagOf(present) !== etagOf(before)) return null;
      const addsNothing = present.sizeBytes === next.bytes.byteLength && present.digest === digestOf(next.bytes);
      return addsNothing ? unchanged(present) : putState(ctx, tx, actor, roomId, present, next);
    });
    if (written !== null) return written;
  }
  throw new CollabError('write_conflict', 'Other writers changed the state each time it was merged: nothing was written, try again');
}

async function mergedState(documents: Documents, base64: string | null, merges: number, update: Uint8Array): Promise<NextState> {
  const stored = base64 === null ? null : Buffer.from(base64, 'base64');
  const merged = await documents.merge(stored, update);
  if (stored?.equals(merged) === true) return { bytes: merged, merges };
  if (merges + 1 < COMPACT_EVERY) return { bytes: merged, merges: merges + 1 };
  const compacted = await documents.compact(merged);
  if (compacted !== null) return { bytes: compacted, merges: 0 };
  // Is the update too much, or was the state before? A state that is must not refuse every update from now on.
  if (stored === null || (await documents.compact(stored)) !== null) throw tooComplex('time');
  return { bytes: merged, merges: 0 };
}

/** Clears the shared state of a room and answers `{"deleted":true}`, also where there was none. Throws `forbidden`. */
export async function clearState(ctx: Context, actor: Actor, roomId: string): Promise<string> {
  requireBackend(actor, 'read');
  requireChange(actor, roomId);
  checkId('roomId', roomId, limitsOf(actor.environment));
  const partition = p2pOf(actor.environment.id, roomId);
  await locks.run(partition, () =>
    ctx.store.transact(async (tx) => {
      const before = await readRecord(tx, partition);
      if (before.sizeBytes === 0) return;
      tx.delete(partition, P2P_BYTES_KEY);
      countUsage(tx, actor.environment.id, before.updatedBy, 'stateBytes', -before.sizeBytes);
      // The count goes on, so that whoever kept the version of an old state can tell the next one from it.
      putRecord(tx, actor, roomId, { ...noState, version: before.version + 1 }, ctx.clock.now(), 'p2p.state.cleared');
    }),
  );
  return '{"deleted":true}';
}

/** Removes the shared state of a room that is being deleted, inside the transaction that does. */
export async function removeState(tx: Transaction, actor: Actor, roomId: string, now: number): Promise<void> {
  const partition = p2pOf(actor.environment.id, roomId);
  const before = await readRecord(tx, partition);
  if (before.version === 0) return;
  tx.delete(partition, P2P_BYTES_KEY);
  tx.delete(partition, P2P_RECORD_KEY);
  countUsage(tx, actor.environment.id, before.updatedBy, 'stateBytes', -before.sizeBytes);
  if (before.sizeBytes > 0) emitState(tx, actor, roomId, { ...noState, version: before.version + 1 }, now, 'p2p.state.cleared');
}

/** The state as JSON, as `GET` answers it. */
export function renderState(roomId: string, { record, base64 }: P2pState): string {
  const { version, sizeBytes, updatedAt, updatedBy } = record;
  const rest = JSON.stringify({ version, sizeBytes, contentType: P2P_CONTENT_TYPE, updatedAt, updatedBy });
  return `{"roomId":${JSON.stringify(roomId)},"state":${base64 === null ? 'null' : `"${base64}"`},${rest.slice(1)}`;
}

/** What a write answers with. */
export function renderWritten(roomId: string, { record: { version, sizeBytes, updatedAt } }: P2pState): string {
  return JSON.stringify({ roomId, version, sizeBytes, updatedAt });
}

/** What a P2pRecord calls the digest of a state. */
export const digestOf = (bytes: Uint8Array): string => hash('sha256', bytes, 'hex').slice(0, 16);

const toBase64 = ({ buffer, byteOffset, byteLength }: Uint8Array): string => Buffer.from(buffer, byteOffset, byteLength).toString('base64');

const etagOf = ({ version, digest }: P2pRecord): string => `"${version}-${digest}"`;

async function readRecord(reader: Pick<Transaction, 'get'>, partition: string): Promise<P2pRecord> {
  const stored = await reader.get(partition, P2P_RECORD_KEY);
  return stored === undefined ? noState : (JSON.parse(stored) as P2pRecord);
}

function requirePrecondition(precondition: Precondition, record: P2pRecord): void {
  if (precondition(etagOf(record), record.sizeBytes > 0)) return;
  throw new CollabError('precondition_failed', `The state is not as If-Match or If-None-Match demands: it is at version ${record.version}`);
}

function requireSize(environment: Environment, bytes: Uint8Array): void {
  if (bytes.byteLength > maxStateBytes(environment)) throw stateTooLarge(environment);
}

function unchanged(record: P2pRecord): P2pState {
  return { record, etag: etagOf(record), base64: null, unchanged: true };
}

/** Puts a state in place of the one before, in a room that is made if it is new. */
async function putState(ctx: Context, tx: Transaction, actor: Actor, roomId: string, before: P2pRecord, { bytes, merges }: NextState): Promise<P2pState> {
  const now = ctx.clock.now();
  const updatedAt = timestamp(now);
  const environmentId = actor.environment.id;
  const record: P2pRecord = { version: before.version + 1, sizeBytes: bytes.byteLength, digest: digestOf(bytes), merges, updatedAt, updatedBy: actingUserId(actor) };
  const base64 = toBase64(bytes);
  if (await ensureRoom(tx, environmentId, roomId, updatedAt)) touchRoom(tx, environmentId, roomId, updatedAt);
  tx.put(p2pOf(environmentId, roomId), P2P_BYTES_KEY, base64);
  moveUsage(tx, actor, before, record);
  putRecord(tx, actor, roomId, record, now, 'p2p.state.updated');
  return { record, etag: etagOf(record), base64, unchanged: false };
}

/** Counts a state for its last writer. Only one that grows can be refused: a smaller one must always be possible. */
function moveUsage(tx: Transaction, actor: Actor, before: P2pRecord, after: P2pRecord): void {
  countUsage(tx, actor.environment.id, before.updatedBy, 'stateBytes', -before.sizeBytes);
  if (after.sizeBytes > before.sizeBytes) chargeUsage(tx, actor, after.updatedBy, 'stateBytes', after.sizeBytes);
  else countUsage(tx, actor.environment.id, after.updatedBy, 'stateBytes', after.sizeBytes);
}

function putRecord(tx: Transaction, actor: Actor, roomId: string, record: P2pRecord, now: number, type: EventType): void {
  tx.put(p2pOf(actor.environment.id, roomId), P2P_RECORD_KEY, JSON.stringify(record));
  emitState(tx, actor, roomId, record, now, type);
}

/** Emits the event of a change, without the bytes. */
function emitState(tx: Transaction, actor: Actor, roomId: string, { version, sizeBytes }: P2pRecord, now: number, type: EventType): void {
  const userId = actingUserId(actor);
  const data = JSON.stringify({ roomId, version, sizeBytes, updatedAt: timestamp(now), updatedBy: userId });
  emitChange(tx, actor.environment, { type, at: now, roomId, threadId: null, userId, via: actor.via, data });
}
