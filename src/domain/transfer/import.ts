import { createHash, type Hash } from 'node:crypto';
import { CollabError } from '../../model/errors.ts';
import { timeKey } from '../../lib/ids.ts';
import { isDeeperThan } from '../../lib/json-depth.ts';
import { type Environment, SLUG_PATTERN } from '../../model/environment.ts';
import type { KeyPointer } from '../../model/key.ts';
import { renderThreadStats } from '../../model/thread.ts';
import type { StagedBlob } from '../../ports/blobs.ts';
import type { Transaction } from '../../ports/store.ts';
import { findLocation, newLocation, noIndex } from '../comments/comment-location.ts';
import type { Context } from '../context.ts';
import { EXPORT_FORMAT, lineInput, type LineOf, type LineType } from './export-format.ts';
import { filesIn, putFileJob } from '../files/file-jobs.ts';
import { checkLine } from './import-checks.ts';
import { MAX_JSON_DEPTH } from '../input/json.ts';
import { ImportMarker } from '../environments/unfinished-work.ts';
import {
  ENVIRONMENTS, escapeId, filesOf, KEY_HASHES, keysOf, NEWEST_KEY, P2P_BYTES_KEY, P2P_RECORD_KEY, p2pOf, ROOM_KEY, roomKey, roomRecordsOf, roomsOf,
  signingKeysOf, SLUGS, STATS_KEY, THREAD_KEY, threadKey, threadRecordsOf, unlinkedOf, usersOf,
} from '../records/partitions.ts';
import { newStreamId } from '../events/streams.ts';
import { recountUsage } from '../quotas/usage-count.ts';
import { markOrderComplete, addToOrder } from '../users/user-order.ts';
import { isRecord, validate } from '../input/validate.ts';

/** Characters of lines that are written in one commit. */
const COMMIT_LENGTH = 512 * 1024;

type Write = (tx: Transaction) => void;

/** What was read of one thread or room, to be counted. */
interface OpenThread {
  readonly partition: string;
  readonly id: string;
  readonly updatedAt: string;
  comments: number;
}
interface OpenRoom {
  readonly roomId: string;
  readonly lastActivityAt: string;
  threads: number;
  open: number;
}
interface OpenFile {
  readonly file: LineOf<'file'>['data'];
  readonly staged: StagedBlob;
  readonly hash: Hash;
  bytes: number;
}

/**
 * Takes an export in, line by line. An environment becomes visible in one commit, after its last line: until then nobody
 * can reach it, and what a broken import has left is removed by the next one or by `sweepLeftovers`. Call `add` for each line in order, then
 * `finish`; after a rejection call `abandon`.
 */
export class Import {
  readonly #ctx: Context;
  readonly #skipExisting: boolean;
  /** The environments that are there now. */
  readonly done: Environment[] = [];
  /** Those that were there before, and left alone. */
  readonly skipped: string[] = [];
  #begun = false;
  #environment: Environment | null = null;
  #note: ImportMarker | null = null;
  #skipping = false;
  #lines = 0;
  #waiting: Write[] = [];
  #waitingLength = 0;
  /** What gives access, written with the environment. */
  #keys: LineOf<'key'>['data'][] = [];
  #room: OpenRoom | null = null;
  #thread: OpenThread | null = null;
  #file: OpenFile | null = null;
  #files = 0;

  /** @param skipExisting whether environments that are there already are passed over; otherwise they are refused */
  constructor(ctx: Context, { skipExisting }: { skipExisting: boolean }) {
    this.#ctx = ctx;
    this.#skipExisting = skipExisting;
  }

  /** Takes the next line. Throws `invalid_request` for one that is out of place or malformed, `slug_taken`, `id_taken`. */
  async add(text: string): Promise<void> {
    const parsed = parse(text);
    const type = String(parsed['type']);
    if (!this.#begun) return this.#begin(type, parsed);
    if (this.#skipping && type !== 'environment') return;
    const input = lineInput(type);
    if (input === undefined || type === 'export') throw invalid(`a line of the type ${JSON.stringify(type.slice(0, 60))} does not belong here`);
    const fields: unknown = validate(input, parsed);
    if (type === 'environment') return this.#open(fields as LineOf<'environment'>);
    if (this.#environment === null) throw invalid(`a line of the type ${type} must follow one of the type environment`);
    checkLine(type as LineType, fields, this.#environment);
    if (type !== 'chunk') await this.#closeFile();
    if (type === 'end') return this.#close((fields as LineOf<'end'>).lines);
    this.#lines++;
    await this.#take(type as LineType, fields, this.#environment.id);
    this.#waitingLength += text.length;
    await this.#note?.goOn();
    if (this.#waitingLength >= COMMIT_LENGTH) await this.#write();
  }

  /** Ends the import. Throws `invalid_request` when the last environment is not whole. */
  finish(): void {
    if (!this.#begun) throw invalid('the file is empty');
    if (this.#environment !== null && !this.#skipping) throw invalid(`the file ends in the middle of the environment ${this.#environment.slug}`);
  }

  /** Removes what was taken in of an environment that is not whole. */
  async abandon(): Promise<void> {
    await this.#file?.staged.discard();
    this.#file = null;
    this.#forget();
    await this.#note?.undo();
    this.#note = null;
    this.#environment = null;
  }

  #begin(type: string, parsed: Record<string, unknown>): void {
    if (type !== 'export' || typeof parsed['format'] !== 'number') throw invalid('this is no export of Collab: the first line must be {"type":"export","format":1}');
    if (parsed['format'] > EXPORT_FORMAT) throw invalid(`the export has the format ${parsed['format']}, of a newer Collab; this one reads ${EXPORT_FORMAT}`);
    this.#begun = true;
  }

  async #open(line: LineOf<'environment'>): Promise<void> {
    const environment: Environment = line.data;
    if (this.#environment !== null) throw invalid(`the environment ${this.#environment.slug} has no line of the type end`);
    const { id, slug } = environment;
    if (!SLUG_PATTERN.test(slug)) throw invalid('data.slug must be 1 to 63 lower-case letters, digits and inner hyphens');
    checkLine('environment', line, environment);
    this.#skipping = (await this.#ctx.store.get(ENVIRONMENTS, id)) !== undefined;
    if (this.#skipping) {
      if (!this.#skipExisting) throw new CollabError('id_taken', `The environment ${slug} (${id}) is here already`);
      this.skipped.push(slug);
      return;
    }
    const holder = await this.#ctx.store.get(SLUGS, slug);
    if (holder !== undefined) throw new CollabError('slug_taken', `Another environment (${holder}) has the slug ${slug}`);
    this.#forget();
    this.#note = await ImportMarker.begin(this.#ctx, { id, slug });
    // Its events begin anew, and nobody may take them for those of the past.
    this.#environment = { ...environment, streamId: newStreamId() };
    this.#lines = 1;
    this.#files = 0;
    this.#keys = [];
  }

  async #take(type: LineType, fields: unknown, environmentId: string): Promise<void> {
    switch (type) {
      case 'signing-key':
        return this.#signingKey((fields as LineOf<'signing-key'>).data, environmentId);
      case 'key':
        return this.#key((fields as LineOf<'key'>).data, environmentId);
      case 'user':
        return this.#user((fields as LineOf<'user'>).data, environmentId);
      case 'file':
        return this.#openFile((fields as LineOf<'file'>).data, environmentId);
      case 'chunk':
        return this.#chunk((fields as LineOf<'chunk'>).data);
      case 'state':
        return this.#state(fields as LineOf<'state'>, environmentId);
      case 'room':
        return this.#openRoom(fields as LineOf<'room'>, environmentId);
      case 'thread':
        return this.#openThread(fields as LineOf<'thread'>, environmentId);
      case 'comment':
        return this.#comment(fields as LineOf<'comment'>, environmentId);
      default:
        throw invalid(`a line of the type ${type} does not belong here`);
    }
  }

  #signingKey(data: LineOf<'signing-key'>['data'], environmentId: string): void {
    this.#plan((tx) => tx.put(signingKeysOf(environmentId), data.kid, JSON.stringify(data)));
  }

  #key(data: LineOf<'key'>['data'], environmentId: string): void {
    if (data.environmentId !== environmentId) throw invalid(`data.environmentId must be ${environmentId}`);
    this.#keys.push(data);
  }

  #user(data: LineOf<'user'>['data'], environmentId: string): void {
    if (data.id !== data.userId) throw invalid('data.id and data.userId must be the same');
    const key = safeName(data.userId);
    this.#plan((tx) => {
      tx.put(usersOf(environmentId), key, JSON.stringify(data));
      addToOrder(tx, environmentId, data);
    });
  }

  #state({ roomId, data, bytes }: LineOf<'state'>, environmentId: string): void {
    const partition = p2pOf(environmentId, checkedName(roomId));
    this.#plan((tx) => {
      tx.put(partition, P2P_RECORD_KEY, JSON.stringify(data));
      if (bytes !== null) tx.put(partition, P2P_BYTES_KEY, bytes);
    });
  }

  #openRoom({ data, lastActivityAt }: LineOf<'room'>, environmentId: string): void {
    this.#closeRoom();
    const { roomId, createdAt } = data;
    this.#room = { roomId, lastActivityAt, threads: 0, open: 0 };
    this.#plan((tx) => {
      tx.put(roomRecordsOf(environmentId, checkedName(roomId)), ROOM_KEY, JSON.stringify(data));
      tx.put(roomsOf(environmentId), roomKey(createdAt, roomId), escapeId(roomId));
    });
  }

  #openThread({ data, lastActivityAt }: LineOf<'thread'>, environmentId: string): void {
    this.#closeThread();
    const room = this.#room;
    if (room?.roomId !== data.roomId) throw invalid('a thread must follow the line of its room');
    const { id, createdAt, resolved } = data;
    room.threads++;
    if (!resolved) room.open++;
    const partition = threadRecordsOf(environmentId, id);
    this.#thread = { partition, id, updatedAt: lastActivityAt, comments: 0 };
    this.#plan((tx) => {
      tx.put(partition, THREAD_KEY, JSON.stringify(data));
      tx.put(roomRecordsOf(environmentId, data.roomId), threadKey(createdAt, id), id);
      tx.put(roomRecordsOf(environmentId, data.roomId), NEWEST_KEY, id);
    });
  }

  async #comment({ data, chosenId }: LineOf<'comment'>, environmentId: string): Promise<void> {
    const thread = this.#thread;
    if (thread?.id !== data.threadId) throw invalid('a comment must follow the line of its thread');
    thread.comments++;
    const now = Date.parse(data.createdAt);
    // Most ids say where the comment is; those that a client chose may not, or may seem to and mislead.
    const told = chosenId === true ? undefined : await findLocation(noIndex, environmentId, data.id);
    const place = told?.partition === thread.partition && told.key.includes(`/${timeKey(now)}~`) ? told : undefined;
    this.#plan((tx) => {
      const { partition, key } = place ?? newLocation(tx, environmentId, data.threadId, now, data.id);
      tx.put(partition, key, JSON.stringify(data));
    });
  }

  async #openFile(file: LineOf<'file'>['data'], environmentId: string): Promise<void> {
    const staged = await filesIn(this.#ctx).blobs.stage();
    this.#file = { file, staged, hash: createHash('sha256'), bytes: 0 };
    const { id, type } = file.attachment;
    this.#plan((tx) => {
      tx.put(filesOf(environmentId), id, JSON.stringify(file));
      if (file.commentId === null) tx.put(unlinkedOf(environmentId), id, '1');
      if (type === 'image') putFileJob(tx, 'thumb', environmentId, id, file.uploadedBy);
    });
  }

  async #chunk(data: string): Promise<void> {
    const file = this.#file;
    if (file === null) throw invalid('a chunk must follow the line of its file');
    const bytes = Buffer.from(data, 'base64');
    file.bytes += bytes.byteLength;
    file.hash.update(bytes);
    await file.staged.write(bytes);
  }

  async #closeFile(): Promise<void> {
    const open = this.#file;
    if (open === null || this.#environment === null) return;
    const { attachment, sha256 } = open.file;
    if (open.bytes !== attachment.sizeBytes || open.hash.digest('hex') !== sha256) {
      throw invalid(`the chunks of the file ${attachment.id} are not its content`);
    }
    await open.staged.commit(this.#environment.id, attachment.id);
    this.#files++;
    this.#file = null;
  }

  #closeThread(): void {
    const thread = this.#thread;
    if (thread === null) return;
    const { partition, comments, updatedAt } = thread;
    this.#plan((tx) => tx.put(partition, STATS_KEY, renderThreadStats({ commentCount: comments, updatedAt })));
    this.#thread = null;
  }

  #closeRoom(): void {
    this.#closeThread();
    const room = this.#room;
    const environmentId = this.#environment?.id;
    if (room === null || environmentId === undefined) return;
    const stats = { threadCount: room.threads, openThreadCount: room.open, lastActivityAt: room.lastActivityAt };
    this.#plan((tx) => tx.put(roomRecordsOf(environmentId, room.roomId), STATS_KEY, JSON.stringify(stats)));
    this.#room = null;
  }

  /** Makes the environment visible, with everything that gives access to it. */
  async #close(lines: number): Promise<void> {
    const environment = this.#environment;
    if (environment === null) return;
    if (lines !== this.#lines) throw invalid(`the environment ${environment.slug} has ${this.#lines} lines before its end, not ${lines}`);
    this.#closeRoom();
    await this.#write();
    await this.#requireFiles(environment.id);
    const keys = this.#keys;
    await this.#ctx.store.transact(async (tx) => {
      if ((await tx.get(ENVIRONMENTS, environment.id)) !== undefined) throw new CollabError('id_taken', `The environment ${environment.slug} has come here by another import`);
      if ((await tx.get(SLUGS, environment.slug)) !== undefined) throw new CollabError('slug_taken', `Another environment has the slug ${environment.slug} now`);
      await this.#note?.keep(tx);
      tx.put(ENVIRONMENTS, environment.id, JSON.stringify(environment));
      tx.put(SLUGS, environment.slug, environment.id);
      markOrderComplete(tx, environment.id);
      for (const key of keys) {
        // Whoever holds that key would reach this environment instead of the one that it was made for.
        if (key.revokedAt === null && (await tx.get(KEY_HASHES, key.hash)) !== undefined) throw new CollabError('id_taken', `The key ${key.id} is a key of another environment`);
        tx.put(keysOf(environment.id), key.id, JSON.stringify(key));
        const pointer: KeyPointer = { environmentId: environment.id, keyId: key.id, expiresAt: key.expiresAt };
        if (key.revokedAt === null) tx.put(KEY_HASHES, key.hash, JSON.stringify(pointer));
      }
    });
    this.#environment = null;
    this.#note = null;
    this.done.push(environment);
    await recountUsage(this.#ctx, environment.id);
  }

  /** Whoever cleans up among the files meanwhile takes those of an environment that is not there yet for leftovers. */
  async #requireFiles(environmentId: string): Promise<void> {
    if (this.#files === 0) return;
    let found = 0;
    for await (const _ of filesIn(this.#ctx).blobs.list(environmentId)) found++;
    if (found < this.#files) throw new CollabError('internal', `${this.#files - found} files were removed while they were imported`);
  }

  #plan(write: Write): void {
    this.#waiting.push(write);
  }

  async #write(): Promise<void> {
    const writes = this.#waiting;
    this.#waiting = [];
    this.#waitingLength = 0;
    if (writes.length === 0) return;
    await this.#ctx.store.transact(async (tx) => {
      await this.#note?.require(tx);
      for (const write of writes) write(tx);
    });
  }

  /** Forgets what was read and not written. */
  #forget(): void {
    this.#waiting = [];
    this.#waitingLength = 0;
    this.#room = null;
    this.#thread = null;
  }
}

function parse(text: string): Record<string, unknown> {
  if (isDeeperThan(text, MAX_JSON_DEPTH)) throw invalid(`it must not nest arrays and objects more than ${MAX_JSON_DEPTH} levels deep`);
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value;
  } catch {
    throw invalid('it is not valid JSON');
  }
  throw invalid('it must be a JSON object');
}

/** A free id as a key. Throws `invalid_request` for one that cannot be one. */
function safeName(id: string): string {
  try {
    return escapeId(id);
  } catch {
    throw invalid(`${JSON.stringify(id)} is no valid Unicode`);
  }
}

function checkedName(id: string): string {
  safeName(id);
  return id;
}

function invalid(message: string): CollabError {
  return new CollabError('invalid_request', message);
}
