import { CollabError } from '../../model/errors.ts';
import { newId, timeKey } from '../../lib/ids.ts';
import type { SharedStateRecord } from '../../model/shared-state.ts';
import type { Entry, Reader, Transaction } from '../../ports/store.ts';
import type { Context } from '../context.ts';
import { STATE_BYTES_KEY, stateChunksOf, stateStagesOf } from '../records/partitions.ts';

/** The bytes of a state that are ready to be stored by `putBytes`. */
export interface StagedBytes {
  /** The value of `STATE_BYTES_KEY`. */
  readonly value: string;
  /** Id of the stage; null if the value has the bytes itself. */
  readonly stage: string | null;
}

/** Where the chunks of a large state are. */
interface ChunkList {
  readonly id: string;
  readonly count: number;
}

/** Records of an imported state: the bytes, and chunks. */
export interface StateRecord extends Entry {
  readonly partition: string;
}

/** Larger states, in bytes, are stored in chunks: as base64 they might not fit into one commit of the store. */
export const WHOLE_BYTES = 10 * 1024 * 1024;
/** Bytes of a chunk; a multiple of 3, so that the base64 of chunks is joined to that of the state. */
const CHUNK_BYTES = 3 * 1024 * 1024;
/** A stage that is older than this, in milliseconds, belongs to no running request. */
const STAGE_MS = 3_600_000;

/** Begins a value that names chunks. Base64 has no colon. */
const CHUNKS_MARK = 'chunks:';
const STAGE_PREFIX = 'st_';

const renderChunks = ({ id, count }: ChunkList): string => `${CHUNKS_MARK}${id}:${count}`;

function parseChunks(value: string | undefined): ChunkList | null {
  if (value?.startsWith(CHUNKS_MARK) !== true) return null;
  const [id = '', count] = value.slice(CHUNKS_MARK.length).split(':');
  return { id, count: Number(count) };
}

const chunkBase64 = (bytes: Uint8Array, index: number): string =>
  toBase64(bytes.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES));

/** Bytes as base64. */
export const toBase64 = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');

/**
 * Reads the bytes of a state as base64. Returns undefined if there are none, and if the state was replaced in the
 * meantime: outside a transaction, compare the record before and after.
 */
export async function readBytes(
  reader: Pick<Reader, 'get'>,
  environmentId: string,
  partition: string,
): Promise<string | undefined> {
  const value = await reader.get(partition, STATE_BYTES_KEY);
  const list = parseChunks(value);
  if (list === null) return value;
  const chunks: string[] = [];
  for (let index = 0; index < list.count; index++) {
    const chunk = await reader.get(stateChunksOf(environmentId, list.id), String(index));
    if (chunk === undefined) return undefined;
    chunks.push(chunk);
  }
  return chunks.join('');
}

/**
 * Runs `write` with the bytes of a state to be stored. The chunks of a large state are committed before, where no
 * reader finds them, and removed afterwards unless `putBytes` was committed. After a crash, `sweepStages` removes them.
 */
export async function withStagedBytes<T>(
  ctx: Context,
  environmentId: string,
  bytes: Uint8Array,
  write: (staged: StagedBytes) => Promise<T>,
): Promise<T> {
  if (bytes.byteLength <= WHOLE_BYTES) return write({ value: toBase64(bytes), stage: null });
  const id = newId(STAGE_PREFIX, ctx.clock.now());
  try {
    return await write(await stage(ctx, environmentId, id, bytes));
  } finally {
    // The sweep does it if this fails.
    await removeStage(ctx, environmentId, id).catch(() => undefined);
  }
}

async function stage(ctx: Context, environmentId: string, id: string, bytes: Uint8Array): Promise<StagedBytes> {
  const count = Math.ceil(bytes.byteLength / CHUNK_BYTES);
  for (let index = 0; index < count; index++) {
    await ctx.store.transact(async (tx) => {
      if (index === 0) tx.put(stateStagesOf(environmentId), id, String(count));
      else await requireStage(tx, environmentId, id);
      tx.put(stateChunksOf(environmentId, id), String(index), chunkBase64(bytes, index));
    });
  }
  return { value: renderChunks({ id, count }), stage: id };
}

/**
 * Replaces the bytes of a state. `before` is its record, read in the transaction. Throws `write_conflict` if the stage
 * was swept.
 */
export async function putBytes(
  tx: Transaction,
  environmentId: string,
  partition: string,
  before: SharedStateRecord,
  { value, stage: id }: StagedBytes,
): Promise<void> {
  await deleteChunks(tx, environmentId, partition, before);
  if (id !== null) {
    await requireStage(tx, environmentId, id);
    tx.delete(stateStagesOf(environmentId), id);
  }
  tx.put(partition, STATE_BYTES_KEY, value);
}

/** Deletes the bytes of a state. `before` is its record, read in the transaction. */
export async function deleteBytes(
  tx: Transaction,
  environmentId: string,
  partition: string,
  before: SharedStateRecord,
): Promise<void> {
  await deleteChunks(tx, environmentId, partition, before);
  tx.delete(partition, STATE_BYTES_KEY);
}

/**
 * The records of the bytes of a state, which may be written in any number of commits: for an environment that nobody
 * can read yet.
 */
export function stateRecords(
  environmentId: string,
  partition: string,
  base64: string,
  now: number,
): readonly StateRecord[] {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.byteLength <= WHOLE_BYTES) return [{ partition, key: STATE_BYTES_KEY, value: base64 }];
  const list: ChunkList = { id: newId(STAGE_PREFIX, now), count: Math.ceil(bytes.byteLength / CHUNK_BYTES) };
  const chunks = Array.from({ length: list.count }, (_, index) => ({
    partition: stateChunksOf(environmentId, list.id),
    key: String(index),
    value: chunkBase64(bytes, index),
  }));
  return [...chunks, { partition, key: STATE_BYTES_KEY, value: renderChunks(list) }];
}

/** Removes the chunks of states that were never stored because the server ended. For the background worker. */
export async function sweepStages(ctx: Context, environmentId: string): Promise<void> {
  const end = STAGE_PREFIX + timeKey(ctx.clock.now() - STAGE_MS);
  for (const { key: id } of await ctx.store.range(stateStagesOf(environmentId))) {
    if (id < end) await removeStage(ctx, environmentId, id);
  }
}

function removeStage({ store }: Context, environmentId: string, id: string): Promise<void> {
  return store.transact(async (tx) => {
    const count = await tx.get(stateStagesOf(environmentId), id);
    if (count === undefined) return;
    tx.delete(stateStagesOf(environmentId), id);
    deleteList(tx, environmentId, { id, count: Number(count) });
  });
}

async function requireStage(tx: Transaction, environmentId: string, id: string): Promise<void> {
  if ((await tx.get(stateStagesOf(environmentId), id)) !== undefined) return;
  throw new CollabError('write_conflict', 'Writing the state took too long: nothing was written, try again');
}

async function deleteChunks(
  tx: Transaction,
  environmentId: string,
  partition: string,
  { sizeBytes }: SharedStateRecord,
): Promise<void> {
  // Only a state that an earlier version has stored has its bytes in this value.
  const list = sizeBytes > WHOLE_BYTES ? parseChunks(await tx.get(partition, STATE_BYTES_KEY)) : null;
  if (list !== null) deleteList(tx, environmentId, list);
}

function deleteList(tx: Transaction, environmentId: string, { id, count }: ChunkList): void {
  for (let index = 0; index < count; index++) tx.delete(stateChunksOf(environmentId, id), String(index));
}
