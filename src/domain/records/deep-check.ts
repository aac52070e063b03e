import { createHash } from 'node:crypto';
import { yieldToEventLoop } from '../../lib/concurrency/event-loop.ts';
import { messageOf } from '../../lib/thrown.ts';
import { DataError } from '../../model/errors.ts';
import type { StoredFile } from '../../model/attachment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { Store, StoredEvent } from '../../ports/store.ts';
import type { AuditChain } from '../audit/chain.ts';
import { verifyChain } from '../audit/verify.ts';
import { type Context, requireFileStorage } from '../context.ts';
import { listEnvironments } from '../environments/environments.ts';
import { jsonOrUndefined } from '../input/json.ts';
import { filesOf } from './partitions.ts';
import { scanEntries, scanPartitions, scanSlices } from './scan.ts';
import { streamOf } from '../events/streams.ts';

/** Events per read. */
const PAGE = 500;
const CHUNK_BYTES = 1024 * 1024;

/** A stored item that differs from what was written. */
export interface Damage {
  readonly kind: 'record' | 'event' | 'file' | 'stored data' | 'audit log';
  /** Identifies the item: partition and key, environment and position, environment and file, or a part of the store. */
  readonly name: string;
  /** The predicate of a sentence about the item, e.g. `is not valid JSON`. */
  readonly fault: string;
}

/** How much was read so far. */
export interface DeepCounts {
  records: number;
  events: number;
  files: number;
}

/**
 * Reads everything in the store: records and events must be what was written (`StoreOperations.faults`) and valid JSON,
 * an event must contain its position, the bytes of a file must have the SHA-256 of its record, and audit logs must be
 * intact.
 *
 * @param counts updated while reading, to show progress
 */
export async function* findDamage(ctx: Context, counts: DeepCounts): AsyncIterable<Damage> {
  for await (const { name, fault } of ctx.operations?.faults() ?? [])
    yield { kind: 'stored data', name: `(${name})`, fault };
  yield* damagedRecords(ctx, counts);
  yield* damagedChain(ctx, null);
  for (const environment of await listEnvironments(ctx)) {
    yield* damagedEvents(ctx, environment, counts);
    yield* damagedFiles(ctx, environment.id, counts);
    yield* damagedChain(ctx, environment.id);
  }
}

async function* damagedChain(ctx: Context, chain: AuditChain): AsyncIterable<Damage> {
  const { faults } = await verifyChain(ctx, chain);
  for (const fault of faults)
    yield {
      kind: 'audit log',
      name: chain === null ? 'of the server' : `of ${chain}`,
      fault: `is not intact: ${fault}`,
    };
}

async function* damagedRecords({ store }: Context, counts: DeepCounts): AsyncIterable<Damage> {
  for await (const partition of scanPartitions(store, '')) {
    // Lets timers and signal handlers run.
    await yieldToEventLoop();
    yield* damagedIn(store, partition, counts);
  }
}

async function* damagedIn(store: Store, partition: string, counts: DeepCounts): AsyncIterable<Damage> {
  try {
    for await (const slice of scanSlices(store, partition)) {
      for (const { key, value } of slice)
        if (isMeantAsJson(value) && !isJson(value))
          yield { kind: 'record', name: `${partition} ${key}`, fault: 'is not valid JSON' };
      counts.records += slice.length;
    }
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    yield { kind: 'record', name: `${partition} ...`, fault: `cannot be read: ${error.message}` };
  }
}

async function* damagedEvents({ store }: Context, environment: Environment, counts: DeepCounts): AsyncIterable<Damage> {
  const stream = streamOf(environment);
  const name = (seq: number): string => `${environment.id} #${seq}`;
  const last = await store.lastSeq(stream);
  for (let since = (await store.oldestSeq(stream)) - 1; since < last;) {
    await yieldToEventLoop();
    let events: readonly StoredEvent[];
    try {
      events = await store.events(stream, since, PAGE);
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      yield { kind: 'event', name: name(since + 1), fault: `and later ones cannot be read: ${error.message}` };
      return;
    }
    const [first] = events;
    if (first === undefined || first.seq !== since + 1)
      yield { kind: 'event', name: name(since + 1), fault: 'is missing' };
    for (const { seq, text } of events)
      if (seqOf(text) !== seq)
        yield { kind: 'event', name: name(seq), fault: 'is not valid JSON, or has another position' };
    counts.events += events.length;
    if (events.length === 0) return;
    since = events.at(-1)?.seq ?? last;
  }
}

async function* damagedFiles(ctx: Context, environmentId: string, counts: DeepCounts): AsyncIterable<Damage> {
  for await (const { key, value } of scanEntries(ctx.store, filesOf(environmentId))) {
    const record = jsonOrUndefined(value);
    const fault =
      typeof record === 'object' && record !== null
        ? await checkFile(ctx, environmentId, key, record as StoredFile)
        : 'has a record that is no JSON object';
    if (fault !== null) yield { kind: 'file', name: `${environmentId} ${key}`, fault };
    counts.files++;
  }
}

/** The fault of the bytes of a file; null if there is none. */
async function checkFile(
  ctx: Context,
  environmentId: string,
  fileId: string,
  { sha256 }: StoredFile,
): Promise<string | null> {
  const reader = await requireFileStorage(ctx)
    .blobs.open(environmentId, fileId)
    .catch(() => null);
  if (reader === null) return 'is missing';
  const hash = createHash('sha256');
  try {
    for (let at = 0; ;) {
      const chunk = await reader.read(at, CHUNK_BYTES);
      if (chunk.byteLength === 0) break;
      hash.update(chunk);
      at += chunk.byteLength;
    }
  } catch (error) {
    return `cannot be read: ${messageOf(error)}`;
  } finally {
    await reader.close();
  }
  return hash.digest('hex') === sha256 ? null : 'does not have the SHA-256 of its record';
}

/** Whether a record should be JSON. No record begins with a control character: such a text is from another program. */
function isMeantAsJson(text: string): boolean {
  return /^[[{]/.test(text) || (text !== '' && text < ' ');
}

function isJson(text: string): boolean {
  return jsonOrUndefined(text) !== undefined;
}

function seqOf(text: string): unknown {
  return (jsonOrUndefined(text) as { seq?: unknown } | null | undefined)?.seq;
}
