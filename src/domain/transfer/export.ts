import type { StoredFile } from '../../model/attachment.ts';
import type { Comment } from '../../model/comment.ts';
import type { Environment } from '../../model/environments/environment.ts';
import type { SigningKey } from '../../model/environments/key.ts';
import type { RoomStats } from '../../model/room.ts';
import { parseThreadStats } from '../../model/thread.ts';
import type { Store } from '../../ports/store.ts';
import { decodeCommentId } from '../comments/comment-location.ts';
import type { Context } from '../context.ts';
import { SUBSCRIPTION_PREFIX } from '../notifications/followers.ts';
import { HIDDEN_PREFIX, SHOWN_PREFIX } from '../notifications/notification-records.ts';
import { CHUNK_BYTES, EXPORT_FORMAT, type LineType } from './export-format.ts';
import {
  COMMENT_PREFIX,
  environmentPrefix,
  filesOf,
  followersOf,
  inboxOf,
  keysOf,
  moderationOf,
  notificationSettingsOf,
  STATE_RECORD_KEY,
  sharedStateOf,
  reportsOf,
  ROOM_KEY,
  roomRecordsOf,
  roomsOf,
  signingKeysOf,
  STATS_KEY,
  THREAD_KEY,
  THREAD_PREFIX,
  threadRecordsOf,
  unescapeId,
  usersOf,
} from '../records/partitions.ts';
import { parseRecord } from '../records/record.ts';
import { statePrefix } from '../moderation/queue.ts';
import { recordKind } from '../records/record-kinds.ts';
import { readBytes } from '../rooms/state-bytes.ts';
import { scanEntries, scanPartitions } from '../records/scan.ts';

/** Options of an export. */
export interface ExportOptions {
  /** Whether to include API keys and signing secrets. */
  readonly withSecrets: boolean;
  /**
   * Called with a description of each file that is left out because it was deleted in the meantime or its bytes are
   * missing.
   */
  readonly onMissing: (what: string) => void;
}

/** The first line of every export. */
export function exportHead(): string {
  return `{"type":"export","format":${EXPORT_FORMAT}}`;
}

/**
 * Exports an environment as the lines of docs/export-format.md, without line feeds. Each record is consistent, but the
 * export as a whole is not a snapshot if there are concurrent writes. The same content gives the same lines.
 *
 * @throws {Error} if the store contains a kind of record that this version does not know
 */
export async function* exportEnvironment(
  ctx: Context,
  environment: Environment,
  options: ExportOptions,
): AsyncIterable<string> {
  let lines = 0;
  for await (const line of environmentLines(ctx, environment, options)) {
    lines++;
    yield line;
  }
  yield `{"type":"end","lines":${lines}}`;
}

async function* environmentLines(
  ctx: Context,
  environment: Environment,
  options: ExportOptions,
): AsyncIterable<string> {
  const { store } = ctx;
  const { id } = environment;
  await requireKnownKinds(store, id);
  yield renderLine('environment', JSON.stringify({ ...environment, streamId: undefined }));
  for await (const { value } of scanEntries(store, signingKeysOf(id))) {
    if (options.withSecrets || parseRecord<SigningKey>(value).kind !== 'secret')
      yield renderLine('signing-key', canonicalJson(value));
  }
  if (options.withSecrets)
    for await (const { value } of scanEntries(store, keysOf(id))) yield renderLine('key', canonicalJson(value));
  for await (const { value } of scanEntries(store, usersOf(id))) yield renderLine('user', canonicalJson(value));
  for await (const { value } of scanEntries(store, filesOf(id))) yield* fileLines(ctx, id, value, options);
  const states = sharedStateOf(id, '');
  for await (const partition of scanPartitions(store, states))
    yield* stateLines(store, id, partition, unescapeId(partition.slice(states.length)));
  for (const state of ['held', 'reported'] as const) {
    for await (const { value } of scanEntries(store, moderationOf(id), statePrefix(state)))
      yield renderLine('moderation-item', canonicalJson(value));
  }
  for await (const { key, value } of scanEntries(store, reportsOf(id)))
    yield renderLine('report', canonicalJson(value), `"reporter":${JSON.stringify(key.slice(key.indexOf('/') + 1))}`);
  for await (const { value } of scanEntries(store, roomsOf(id))) yield* roomLines(store, id, unescapeId(value));
  yield* notificationLines(store, id);
}

async function* notificationLines(store: Store, environmentId: string): AsyncIterable<string> {
  for await (const { key, value } of scanEntries(store, notificationSettingsOf(environmentId))) {
    yield renderLine('notification-settings', canonicalJson(value), `"userId":${JSON.stringify(unescapeId(key))}`);
  }
  const followers = followersOf(environmentId, '');
  for await (const partition of scanPartitions(store, followers)) {
    for await (const { key, value } of scanEntries(store, partition, SUBSCRIPTION_PREFIX)) {
      const ids = `"threadId":${JSON.stringify(partition.slice(followers.length))},"userId":${JSON.stringify(unescapeId(key.slice(SUBSCRIPTION_PREFIX.length)))}`;
      yield renderLine('subscription', canonicalJson(value), ids);
    }
  }
  for await (const partition of scanPartitions(store, inboxOf(environmentId, ''))) {
    for (const prefix of [SHOWN_PREFIX, HIDDEN_PREFIX]) {
      for await (const { value } of scanEntries(store, partition, prefix))
        yield renderLine('notification', canonicalJson(value), `"inApp":${prefix === SHOWN_PREFIX}`);
    }
  }
}

/** Throws for a kind of record that this version does not know, which would be missing from the export. */
async function requireKnownKinds(store: Store, environmentId: string): Promise<void> {
  for await (const partition of scanPartitions(store, environmentPrefix(environmentId))) {
    if (recordKind(partition) === undefined)
      throw new Error(`the store holds ${partition}, which this version cannot export`);
  }
}

async function* roomLines(store: Store, environmentId: string, roomId: string): AsyncIterable<string> {
  const partition = roomRecordsOf(environmentId, roomId);
  const record = await store.get(partition, ROOM_KEY);
  const stats = await store.get(partition, STATS_KEY);
  if (record === undefined || stats === undefined) return;
  yield renderLine(
    'room',
    canonicalJson(record),
    `"lastActivityAt":${JSON.stringify(parseRecord<RoomStats>(stats).lastActivityAt)}`,
  );
  for await (const { value } of scanEntries(store, partition, THREAD_PREFIX))
    yield* threadLines(store, environmentId, threadRecordsOf(environmentId, value));
}

async function* threadLines(store: Store, environmentId: string, partition: string): AsyncIterable<string> {
  const record = await store.get(partition, THREAD_KEY);
  const stats = await store.get(partition, STATS_KEY);
  if (record === undefined || stats === undefined) return;
  yield renderLine(
    'thread',
    canonicalJson(record),
    `"lastActivityAt":${JSON.stringify(parseThreadStats(stats).updatedAt)}`,
  );
  for await (const { key, value } of scanEntries(store, partition, COMMENT_PREFIX)) {
    const { id } = parseRecord<Comment>(value);
    // Marks an id that a client chose but that looks generated, or an import would take the location from it.
    const looksGenerated = key.endsWith(`~${id}`) && decodeCommentId(environmentId, id) !== undefined;
    yield renderLine('comment', canonicalJson(value), looksGenerated ? '"chosenId":true' : '');
  }
}

async function* stateLines(
  store: Store,
  environmentId: string,
  partition: string,
  roomId: string,
): AsyncIterable<string> {
  for (;;) {
    const record = await store.get(partition, STATE_RECORD_KEY);
    const bytes = await readBytes(store, environmentId, partition);
    if (record === undefined) return;
    // All must be from one commit.
    if ((await store.get(partition, STATE_RECORD_KEY)) !== record) continue;
    yield `{"type":"state","roomId":${JSON.stringify(roomId)},"data":${canonicalJson(record)},"bytes":${JSON.stringify(bytes ?? null)}}`;
    return;
  }
}

async function* fileLines(
  { blobs }: Context,
  environmentId: string,
  record: string,
  { onMissing }: ExportOptions,
): AsyncIterable<string> {
  const { attachment } = parseRecord<StoredFile>(record);
  const reader = await blobs?.open(environmentId, attachment.id).catch(() => null);
  if (reader === null || reader === undefined) return onMissing(`the file ${attachment.id} (${attachment.filename})`);
  try {
    yield renderLine('file', canonicalJson(record));
    for (let at = 0; at < attachment.sizeBytes;) {
      const chunk = await reader.read(at, Math.min(CHUNK_BYTES, attachment.sizeBytes - at));
      if (chunk.byteLength === 0)
        throw new Error(`the file ${attachment.id} has ${at} bytes, not ${attachment.sizeBytes}`);
      yield renderLine('chunk', JSON.stringify(chunk.toString('base64')));
      at += chunk.byteLength;
    }
  } finally {
    await reader.close();
  }
}

/** JSON text in the form that parsing and rendering it again does not change. */
function canonicalJson(text: string): string {
  return JSON.stringify(parseRecord<unknown>(text));
}

function renderLine(type: LineType, data: string, more = ''): string {
  return `{"type":"${type}","data":${data}${more === '' ? '' : `,${more}`}}`;
}
