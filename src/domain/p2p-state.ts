import { hash } from 'node:crypto';
import { CollabError } from '../errors.ts';
import { timestamp } from '../lib/clock.ts';
import { KeyedLock } from '../lib/keyed-lock.ts';
import { type Environment, limitsOf } from '../model/environment.ts';
import type { EventType } from '../model/event.ts';
import { noState, P2P_CONTENT_TYPE, type P2pRecord } from '../model/p2p-state.ts';
import type { Transaction } from '../ports/store.ts';
import { actingUser, requireBackend, requireChange, requireRead, requireWrite } from './access.ts';
import { checkId } from './bounds.ts';
import type { Actor, Context } from './context.ts';
import { loadYjs } from './crdt.ts';
import { emitChange } from './emit.ts';
import { P2P_BYTES_KEY, P2P_RECORD_KEY, p2pOf } from './partitions.ts';
import { ensureRoom, touchRoom } from './rooms.ts';

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

/** Merges after which a Yjs state is brought back to what the document is. */
export const COMPACT_EVERY = 100;

const MEGABYTE = 1024 * 1024;
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
 * The shared state of a room; none for a room that has no state or does not exist. Throws `forbidden`, `invalid_request`.
 *
 * @param stateVector of a Yjs document, to get only what it lacks
 * @param wanted whether the bytes are, given the ETag
 */
export async function readState(ctx: Context, actor: Actor, roomId: string, stateVector: Uint8Array | null, wanted: Precondition): Promise<P2pState> {
  requireRead(actor, roomId);
  checkId('roomId', roomId, limitsOf(actor.environment));
  const partition = p2pOf(actor.environment.id, roomId);
  for (;;) {
    const record = await readRecord(ctx.store, partition);
    const etag = etagOf(record);
    if (!wanted(etag, record.sizeBytes > 0)) return { record, etag, base64: null, unchanged: true };
    const base64 = record.sizeBytes === 0 ? null : ((await ctx.store.get(partition, P2P_BYTES_KEY)) ?? null);
    // Both must be of one commit, and reads outside of a transaction need not be.
    if ((await readRecord(ctx.store, partition)).version !== record.version) continue;
    if (stateVector === null || base64 === null) return { record, etag, base64, unchanged: false };
    const crdt = await loadYjs();
    return { record, etag, base64: Buffer.from(crdt.diff(Buffer.from(base64, 'base64'), stateVector)).toString('base64'), unchanged: false };
  }
}

/**
 * Replaces the shared state of a room, or merges a Yjs update into it, in a room that is made if it is new. Merging what
 * the state has already changes nothing and tells nobody. Throws `forbidden`, `invalid_request`, `payload_too_large`,
 * `precondition_failed`.
 */
export async function writeState(ctx: Context, actor: Actor, roomId: string, bytes: Uint8Array, merge: boolean, precondition: Precondition): Promise<P2pState> {
  requireWrite(actor, roomId);
  const { environment } = actor;
  checkId('roomId', roomId, limitsOf(environment));
  if (bytes.byteLength === 0) throw new CollabError('invalid_request', 'The state must not be empty');
  if (bytes.byteLength > maxStateBytes(environment)) throw stateTooLarge(environment);
  const crdt = merge ? await loadYjs() : null;
  const partition = p2pOf(environment.id, roomId);
  return locks.run(partition, () =>
    ctx.store.transact(async (tx) => {
      const before = await readRecord(tx, partition);
      requireHolds(precondition, before);
      let next = bytes;
      let merges = 0;
      if (crdt !== null) {
        const stored = before.sizeBytes === 0 ? null : Buffer.from((await tx.get(partition, P2P_BYTES_KEY)) ?? '', 'base64');
        next = crdt.merge(stored, bytes);
        if (stored?.equals(next) === true) return unchanged(before);
        merges = before.merges + 1;
        if (merges >= COMPACT_EVERY) {
          next = crdt.compact(next);
          merges = 0;
        }
        if (next.byteLength > maxStateBytes(environment)) throw stateTooLarge(environment);
      }
      const now = ctx.clock.now();
      const updatedAt = timestamp(now);
      const digest = hash('sha256', next, 'hex').slice(0, 16);
      const record: P2pRecord = { version: before.version + 1, sizeBytes: next.byteLength, digest, merges, updatedAt, updatedBy: actingUser(actor) };
      const base64 = Buffer.from(next.buffer, next.byteOffset, next.byteLength).toString('base64');
      if (await ensureRoom(tx, environment.id, roomId, updatedAt)) touchRoom(tx, environment.id, roomId, updatedAt);
      tx.put(partition, P2P_BYTES_KEY, base64);
      putRecord(tx, actor, roomId, record, now, 'p2p.state.updated');
      return { record, etag: etagOf(record), base64, unchanged: false };
    }),
  );
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
  if (before.sizeBytes > 0) emitState(tx, actor, roomId, { ...noState, version: before.version + 1 }, now, 'p2p.state.cleared');
}

/** The state as JSON (decisions §4). */
export function renderState(roomId: string, { record, base64 }: P2pState): string {
  const { version, sizeBytes, updatedAt, updatedBy } = record;
  const rest = JSON.stringify({ version, sizeBytes, contentType: P2P_CONTENT_TYPE, updatedAt, updatedBy });
  return `{"roomId":${JSON.stringify(roomId)},"state":${base64 === null ? 'null' : `"${base64}"`},${rest.slice(1)}`;
}

/** What a write answers with. */
export function renderWritten(roomId: string, { record: { version, sizeBytes, updatedAt } }: P2pState): string {
  return JSON.stringify({ roomId, version, sizeBytes, updatedAt });
}

const etagOf = ({ version, digest }: P2pRecord): string => `"${version}-${digest}"`;

async function readRecord(reader: Pick<Transaction, 'get'>, partition: string): Promise<P2pRecord> {
  const stored = await reader.get(partition, P2P_RECORD_KEY);
  return stored === undefined ? noState : (JSON.parse(stored) as P2pRecord);
}

function requireHolds(precondition: Precondition, record: P2pRecord): void {
  if (precondition(etagOf(record), record.sizeBytes > 0)) return;
  throw new CollabError('precondition_failed', `The state is not as If-Match or If-None-Match demands: it is at version ${record.version}`);
}

function unchanged(record: P2pRecord): P2pState {
  return { record, etag: etagOf(record), base64: null, unchanged: true };
}

function putRecord(tx: Transaction, actor: Actor, roomId: string, record: P2pRecord, now: number, type: EventType): void {
  tx.put(p2pOf(actor.environment.id, roomId), P2P_RECORD_KEY, JSON.stringify(record));
  emitState(tx, actor, roomId, record, now, type);
}

/** Tells of a change without the bytes: whoever needs them fetches them. */
function emitState(tx: Transaction, actor: Actor, roomId: string, { version, sizeBytes }: P2pRecord, now: number, type: EventType): void {
  const userId = actingUser(actor);
  const data = JSON.stringify({ roomId, version, sizeBytes, updatedAt: timestamp(now), updatedBy: userId });
  emitChange(tx, actor.environment, { type, at: now, roomId, threadId: null, userId, via: actor.via, data });
}
