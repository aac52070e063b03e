import { CollabError } from '../../model/errors.ts';
import { timeKey } from '../../lib/ids.ts';
import type { ModerationItem } from '../../model/moderation.ts';
import { renderThreadStats } from '../../model/thread.ts';
import type { Transaction } from '../../ports/store.ts';
import { decodeCommentId, newLocation } from '../comments/comment-location.ts';
import type { Context } from '../context.ts';
import type { ImportMarker } from '../environments/unfinished-work.ts';
import { putFileJob } from '../files/file-jobs.ts';
import { putThreadSubscription } from '../notifications/followers.ts';
import { addNotification, notificationId, notificationKey } from '../notifications/notification-records.ts';
import { notifiedKey, putNotified } from '../notifications/notified-users.ts';
import { parseSettings } from '../notifications/settings.ts';
import {
  escapeId,
  filesOf,
  NEWEST_KEY,
  notificationSettingsOf,
  STATE_RECORD_KEY,
  sharedStateOf,
  reportsOf,
  ROOM_KEY,
  roomKey,
  roomRecordsOf,
  roomsOf,
  signingKeysOf,
  STATS_KEY,
  THREAD_KEY,
  threadKey,
  threadRecordsOf,
  unlinkedOf,
  usersOf,
} from '../records/partitions.ts';
import { putRecord } from '../records/record.ts';
import { putItem } from '../moderation/queue.ts';
import { stateRecords } from '../rooms/state-bytes.ts';
import { addToOrder } from '../users/user-order.ts';
import type { LineOf, RecordLine } from './export-format.ts';

/** Characters of lines whose records are written in one commit. */
const COMMIT_LENGTH = 512 * 1024;

/** Characters of large values in one commit. */
const COMMIT_VALUES = 4 * 1024 * 1024;

interface Write {
  readonly run: (tx: Transaction) => void;
  /** Characters of the value, if it may be large. */
  readonly length: number;
}

/** The thread whose comments are being read, and how many there are so far. */
interface OpenThread {
  readonly partition: string;
  readonly id: string;
  readonly updatedAt: string;
  /** Ids of its comments that encode their location. */
  readonly commentIds: Set<string>;
  comments: number;
}

/** The room whose threads are being read, and how many there are so far. */
interface OpenRoom {
  readonly roomId: string;
  readonly lastActivityAt: string;
  threads: number;
  openThreads: number;
}

/**
 * Writes the records of one environment from the lines of an export, in batches. Counts, orders and indexes are
 * derived.
 */
export class RecordImport {
  readonly #ctx: Context;
  readonly #environmentId: string;
  readonly #marker: ImportMarker;
  #writes: Write[] = [];
  /** Characters read since the last commit. */
  #length = 0;
  /** Type and id of every record so far that must be unique in the environment. */
  readonly #ids = new Set<string>();
  /** MIME types of the files, by id. */
  readonly #mimeTypes = new Map<string, string>();
  #room: OpenRoom | null = null;
  #thread: OpenThread | null = null;

  constructor(ctx: Context, environmentId: string, marker: ImportMarker) {
    this.#ctx = ctx;
    this.#environmentId = environmentId;
    this.#marker = marker;
  }

  /**
   * Queues the records of a line. Throws `invalid_request` for a misplaced line, and for one whose record was read
   * already.
   */
  add(line: RecordLine): void {
    if (line.type !== 'comment') this.#requireNew(line.type, idOf(line));
    switch (line.type) {
      case 'signing-key':
        return this.#put(signingKeysOf(this.#environmentId), line.data.kid, line.data);
      case 'user':
        return this.#addUser(line.data);
      case 'file':
        return this.#addFile(line.data);
      case 'state':
        return this.#addState(line);
      case 'moderation-item':
        return this.#queue((tx) => putItem(tx, this.#environmentId, line.data as ModerationItem, true));
      case 'report':
        return this.#put(reportsOf(this.#environmentId), `${line.data.commentId}/${line.reporter}`, line.data);
      case 'room':
        return this.#openRoom(line);
      case 'thread':
        return this.#openThread(line);
      case 'comment':
        return this.#addComment(line);
      case 'notification-settings':
        return this.#put(notificationSettingsOf(this.#environmentId), escapeId(line.userId), parseSettings(line.data));
      case 'subscription':
        return this.#queue((tx) =>
          putThreadSubscription(tx, this.#environmentId, line.threadId, line.userId, line.data),
        );
      case 'notification':
        return this.#addNotification(line);
    }
  }

  /** Commits the queue once enough was read. `length` is that of the line just read, in characters. */
  async commitIfDue(length: number): Promise<void> {
    this.#length += length;
    if (this.#length >= COMMIT_LENGTH) await this.#commit();
  }

  /** Commits all that is queued, and the counts of the last room. */
  async finish(): Promise<void> {
    this.#closeRoom();
    await this.#commit();
  }

  #addUser(data: LineOf<'user'>['data']): void {
    if (data.id !== data.userId) throw invalid('data.id and data.userId must be the same');
    this.#put(usersOf(this.#environmentId), escapeId(data.userId), data);
    this.#queue((tx) => addToOrder(tx, this.#environmentId, data));
  }

  #addFile(file: LineOf<'file'>['data']): void {
    const { id, type, mimeType } = file.attachment;
    this.#mimeTypes.set(id, mimeType);
    this.#put(filesOf(this.#environmentId), id, file);
    this.#queue((tx) => {
      if (file.commentId === null) tx.put(unlinkedOf(this.#environmentId), id, '1');
      if (type === 'image') putFileJob(tx, 'thumb', this.#environmentId, id, file.uploadedBy);
    });
  }

  #addState({ roomId, data, bytes }: LineOf<'state'>): void {
    const partition = sharedStateOf(this.#environmentId, roomId);
    this.#put(partition, STATE_RECORD_KEY, data);
    if (bytes === null) return;
    for (const { partition: within, key, value } of stateRecords(
      this.#environmentId,
      partition,
      bytes,
      this.#ctx.clock.now(),
    )) {
      this.#queue((tx) => tx.put(within, key, value), value.length);
    }
  }

  #openRoom({ data, lastActivityAt }: LineOf<'room'>): void {
    this.#closeRoom();
    const { roomId, createdAt } = data;
    this.#room = { roomId, lastActivityAt, threads: 0, openThreads: 0 };
    this.#put(roomRecordsOf(this.#environmentId, roomId), ROOM_KEY, data);
    this.#queue((tx) => tx.put(roomsOf(this.#environmentId), roomKey(createdAt, roomId), escapeId(roomId)));
  }

  #openThread({ data, lastActivityAt }: LineOf<'thread'>): void {
    this.#closeThread();
    const room = this.#room;
    if (room?.roomId !== data.roomId) throw invalid('a thread must follow the line of its room');
    const { id, createdAt, resolved } = data;
    room.threads++;
    if (!resolved) room.openThreads++;
    const partition = threadRecordsOf(this.#environmentId, id);
    this.#thread = { partition, id, updatedAt: lastActivityAt, commentIds: new Set(), comments: 0 };
    this.#put(partition, THREAD_KEY, data);
    const roomPartition = roomRecordsOf(this.#environmentId, data.roomId);
    this.#queue((tx) => {
      tx.put(roomPartition, threadKey(createdAt, id), id);
      tx.put(roomPartition, NEWEST_KEY, id);
    });
  }

  #addComment({ data, chosenId }: LineOf<'comment'>): void {
    const thread = this.#thread;
    if (thread?.id !== data.threadId) throw invalid('a comment must follow the line of its thread');
    thread.comments++;
    const now = Date.parse(data.createdAt);
    // An id that a client chose may decode to another location, or to none: such a comment gets an index entry.
    const decoded = chosenId === true ? undefined : decodeCommentId(this.#environmentId, data.id);
    const matches = decoded?.partition === thread.partition && decoded.key.includes(`/${timeKey(now)}~`);
    this.#requireNew('comment', data.id, matches ? thread.commentIds : this.#ids);
    data.attachments.forEach((attachment, index) => {
      const expected = this.#mimeTypes.get(attachment.id) ?? attachment.mimeType;
      if (attachment.mimeType !== expected)
        throw invalid(`data.attachments[${index}].mimeType must be ${expected}, as in the line of the file`);
    });
    this.#queue((tx) => {
      const { partition, key } = matches ? decoded : newLocation(tx, this.#environmentId, data.threadId, now, data.id);
      putRecord(tx, partition, key, data);
    });
  }

  #addNotification({ data, inApp }: LineOf<'notification'>): void {
    const { userId, threadId, commentId, createdAt } = data;
    const key = notificationKey(userId, commentId, createdAt);
    if (data.id !== notificationId(key))
      throw invalid('the id of a notification must be the one that its user, comment and createdAt give');
    this.#queue((tx) => {
      addNotification(tx, this.#environmentId, { key, inApp, notification: data });
      putNotified(tx, this.#environmentId, threadId, notifiedKey(commentId, 0, escapeId(userId)), {
        at: createdAt,
        users: [userId],
      });
    });
  }

  #closeThread(): void {
    const thread = this.#thread;
    if (thread === null) return;
    const { partition, comments, updatedAt } = thread;
    this.#queue((tx) => tx.put(partition, STATS_KEY, renderThreadStats({ commentCount: comments, updatedAt })));
    this.#thread = null;
  }

  #closeRoom(): void {
    this.#closeThread();
    const room = this.#room;
    if (room === null) return;
    const { roomId, threads, openThreads, lastActivityAt } = room;
    this.#put(roomRecordsOf(this.#environmentId, roomId), STATS_KEY, {
      threadCount: threads,
      openThreadCount: openThreads,
      lastActivityAt,
    });
    this.#room = null;
  }

  #requireNew(type: RecordLine['type'], id: string, ids = this.#ids): void {
    const name = `${type} ${id}`;
    if (ids.has(name)) throw invalid(`the environment has another line of the type ${type} for ${id}`);
    ids.add(name);
  }

  /** Queues a record. */
  #put(partition: string, key: string, data: object): void {
    this.#queue((tx) => putRecord(tx, partition, key, data));
  }

  #queue(run: Write['run'], length = 0): void {
    this.#writes.push({ run, length });
  }

  async #commit(): Promise<void> {
    const writes = this.#writes;
    this.#writes = [];
    this.#length = 0;
    while (writes.length > 0) {
      const next = takeCommit(writes);
      await this.#ctx.store.transact(async (tx) => {
        await this.#marker.requireCurrent(tx);
        for (const { run } of next) run(tx);
      });
    }
  }
}

/** Removes the first writes, as many as belong into one commit: at least one. */
function takeCommit(writes: Write[]): Write[] {
  let length = 0;
  const end = writes.findIndex((write, i) => (length += write.length) > COMMIT_VALUES && i > 0);
  return writes.splice(0, end < 0 ? writes.length : end);
}

/** What identifies the record of a line among those of its type. */
function idOf(line: Exclude<RecordLine, { type: 'comment' }>): string {
  switch (line.type) {
    case 'signing-key':
      return line.data.kid;
    case 'user':
      return line.data.userId;
    case 'file':
      return line.data.attachment.id;
    case 'state':
      return line.roomId;
    case 'report':
      return `${line.data.commentId} by ${line.reporter}`;
    case 'room':
      return line.data.roomId;
    case 'notification-settings':
      return line.userId;
    case 'subscription':
      return `${line.threadId} of ${line.userId}`;
    case 'moderation-item':
    case 'thread':
    case 'notification':
      return line.data.id;
  }
}

function invalid(message: string): CollabError {
  return new CollabError('invalid_request', message);
}
