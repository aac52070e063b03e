/**
 * The names of partitions and the format of keys. Arbitrary text (room ids, user ids) becomes part of a name only
 * through `escapeId`, so that names are printable ASCII and no id can lead into another partition.
 */

/**
 * The longest percent-encoded form: that of 128 characters of three bytes each. Stores from before long room ids have
 * no other.
 */
const MAX_PERCENT_ENCODED = 1_152;
/** Begins the base64 form. Percent-encoding never leaves this character as it is. */
const BASE64_MARK = '=';

/**
 * Text as a part of a partition name or key: percent-encoded UTF-8, or base64url of it where that would be too long.
 * Throws `URIError` on a lone surrogate.
 */
export function escapeId(id: string): string {
  const encoded = encodeURIComponent(id);
  return encoded.length <= MAX_PERCENT_ENCODED ? encoded : BASE64_MARK + Buffer.from(id).toString('base64url');
}

/** The inverse of `escapeId`. */
export function unescapeId(escaped: string): string {
  return escaped.startsWith(BASE64_MARK)
    ? Buffer.from(escaped.slice(BASE64_MARK.length), 'base64url').toString()
    : decodeURIComponent(escaped);
}

/** envId -> Environment. */
export const ENVIRONMENTS = 'envs';
/** slug -> envId. */
export const SLUGS = 'slugs';
/** `<kind>~<environmentId>~<fileId>` -> key of a user: jobs of the background worker (file-jobs.ts). */
export const FILE_JOBS = 'filejobs';
/** envId -> UnfinishedWork: environments of which records or files are to be removed (unfinished-work.ts). */
export const UNFINISHED_WORK = 'leftovers';
/** SHA-256 of an API key, base64url -> KeyPointer. Also written whenever the key changes. */
export const KEY_HASHES = 'keyhash';
/** Hash of an email address -> StoredAdmin. */
export const ADMINS = 'admins';
/** SHA-256 of a session token, base64url -> AdminSession. */
export const ADMIN_SESSIONS = 'adminsess';
/** Hash of an email address, whether an admin has it or not -> times of failed logins. */
export const ADMIN_FAILURES = 'adminfail';
/** `<adminId>~<hash>` -> IdempotencyRecord, encrypted. */
export const ADMIN_IDEMPOTENCY = 'adminidem';
/** Name of a durable consumer -> when it was first started. */
export const CONSUMERS = 'consumers';
/** Name of a lease -> its holder and fencing number; `<name>/renewals`, `<name>/wanted` (leases.ts). */
export const LEASES = 'leases';
/** `<plugin>~<queue>~<environmentId>~<group>` -> JobCounts: what the queues of plugins contain (plugins/jobs.ts). */
export const PLUGIN_QUEUES = 'pluginqueues';

/** Prefix of the partitions that belong to one environment. */
export const environmentPrefix = (environmentId: string): string => `e/${environmentId}/`;

/** keyId -> StoredKey. */
export const keysOf = (environmentId: string): string => `e/${environmentId}/keys`;
/** keyId -> ISO time of its last use, to the minute. */
export const keyUsesOf = (environmentId: string): string => `e/${environmentId}/keyuse`;
/** kid -> SigningKey. */
export const signingKeysOf = (environmentId: string): string => `e/${environmentId}/signing`;
/** escapeId(userId) -> User. */
export const usersOf = (environmentId: string): string => `e/${environmentId}/users`;
/**
 * `u/<createdAt>~<escapeId(userId)>` -> escapeId(userId): users by creation time; `complete` -> '1' once all are in it
 * (user-order.ts).
 */
export const userOrderOf = (environmentId: string): string => `e/${environmentId}/userorder`;
/**
 * `total` and `u/<escapeId(userId)>` -> Usage (usage.ts); `counted` -> '1' once everything was counted
 * (usage-count.ts).
 */
export const usageOf = (environmentId: string): string => `e/${environmentId}/usage`;
/** `<createdAt>~<escapeId(roomId)>` -> escapeId(roomId): rooms by creation time. */
export const roomsOf = (environmentId: string): string => `e/${environmentId}/rooms`;
/**
 * `room` -> RoomRecord, `stats` -> RoomStats, `t/<createdAt>~<threadId>` -> threadId. Every change of a thread in the
 * room also writes here.
 */
export const roomRecordsOf = (environmentId: string, roomId: string): string =>
  `e/${environmentId}/r/${escapeId(roomId)}`;
/** `thread` -> ThreadRecord, `stats` -> ThreadStats, `c/…` -> Comment (comment-location.ts). */
export const threadRecordsOf = (environmentId: string, threadId: string): string => `e/${environmentId}/t/${threadId}`;
/**
 * commentId -> `<threadId> <key in the partition of the thread>`, for comments whose id does not encode it
 * (comment-location.ts).
 */
export const commentIndexOf = (environmentId: string): string => `e/${environmentId}/c`;
/**
 * `record` -> SharedStateRecord, `bytes` -> the state as base64, or where its chunks are: separate, so that reading the version
 * does not read the bytes.
 */
export const sharedStateOf = (environmentId: string, roomId: string): string =>
  `e/${environmentId}/p2p/${escapeId(roomId)}`;
/** Index, from 0 -> a chunk of a large shared state as base64 (state-bytes.ts). */
export const stateChunksOf = (environmentId: string, chunksId: string): string =>
  `e/${environmentId}/p2pchunks/${chunksId}`;
/** Id of chunks that no state names yet -> their number (state-bytes.ts). */
export const stateStagesOf = (environmentId: string): string => `e/${environmentId}/p2pstages`;
/**
 * Removal id -> ThreadRemoval: threads of deleted rooms whose comments are still to be removed;
 * `room/<escapeId(roomId)>` -> UnfinishedDeletion (room-removal.ts).
 */
export const removalsOf = (environmentId: string): string => `e/${environmentId}/removals`;
/** fileId -> StoredFile. */
export const filesOf = (environmentId: string): string => `e/${environmentId}/files`;
/**
 * fileId -> '1', for the files that no comment has linked yet, oldest first; or the time, for one whose long upload ends
 * now and which has no record yet (file-sweep.ts).
 */
export const unlinkedOf = (environmentId: string): string => `e/${environmentId}/unlinked`;
/** hash -> IdempotencyRecord. */
export const idempotencyRecordsOf = (environmentId: string): string => `e/${environmentId}/idem`;
/**
 * Consumer -> StoredConsumerCursor: the positions of durable consumers in the stream of the environment
 * (consumer-cursors.ts).
 */
export const consumerCursorsOf = (environmentId: string): string => `e/${environmentId}/cursors`;
/** `<held|reported|decided>/<time>~<itemId>` -> ModerationItem: by creation, or by decision (queue.ts). */
export const moderationOf = (environmentId: string): string => `e/${environmentId}/moderation`;
/**
 * Keys of items by id, target and author, the ids that held content reserves, and the sizes of the queue (queue.ts).
 */
export const moderationIndexOf = (environmentId: string): string => `e/${environmentId}/modindex`;
/** `<commentId>/<hash of the reporter>` -> Report. */
export const reportsOf = (environmentId: string): string => `e/${environmentId}/reports`;
/** `auditKey` -> AuditRecord: the audit log of an environment, or of the server for null (audit.ts). */
export const auditOf = (environmentId: string | null): string =>
  environmentId === null ? 'audit' : `e/${environmentId}/audit`;
/** `head` -> AuditHead. */
export const auditHeadOf = (environmentId: string | null): string =>
  environmentId === null ? 'audithead' : `e/${environmentId}/audithead`;
/** The environment whose `auditHeadOf` a partition is, null for the server; undefined for any other partition. */
export function chainOfHead(partition: string): string | null | undefined {
  if (partition === auditHeadOf(null)) return null;
  return /^e\/([^/]+)\/audithead$/.exec(partition)?.[1];
}
/** Key -> JSON text: the storage of a plugin (plugins/kv.ts). */
export const pluginKvOf = (environmentId: string, plugin: string): string => `e/${environmentId}/pk/${plugin}`;
/** `j/<id>` -> StoredJob, and its indexes (plugins/jobs.ts). */
export const pluginJobsOf = (environmentId: string, plugin: string, queue: string): string =>
  `e/${environmentId}/pq/${plugin}/${queue}`;

/**
 * The inbox of a user: `n/<time>~<hash>` -> Notification (`h/…` for one that the inbox does not show),
 * `u/<time>~<hash>` -> the room as JSON, for each unread one that it shows, `unread` -> their number
 * (notification-records.ts).
 */
export const inboxOf = (environmentId: string, userId: string): string =>
  `e/${environmentId}/inbox/${escapeId(userId)}`;
/** `<commentId>~<seq>~<n>` -> NotifiedUsers: who was notified of each comment of a thread (notified-users.ts). */
export const notifiedOf = (environmentId: string, threadId: string): string =>
  `e/${environmentId}/notified/${threadId}`;
/**
 * The followers of a thread: `p/<escapeId(userId)>` -> Participation, `s/<escapeId(userId)>` -> ThreadSubscription,
 * `complete` (followers.ts).
 */
export const followersOf = (environmentId: string, threadId: string): string =>
  `e/${environmentId}/followers/${threadId}`;
/** escapeId(userId) -> notification settings that differ from the defaults. */
export const notificationSettingsOf = (environmentId: string): string => `e/${environmentId}/notifyset`;

/** The key of the record at a position of a chain. */
export const auditKey = (seq: number): string => String(seq).padStart(12, '0');
/** The key of the AuditHead of a chain, in `auditHeadOf`. */
export const AUDIT_HEAD_KEY = 'head';
// The fixed keys, and the prefixes of keys, in the partitions above.
export const ROOM_KEY = 'room';
export const THREAD_KEY = 'thread';
export const STATS_KEY = 'stats';
export const STATE_RECORD_KEY = 'record';
export const STATE_BYTES_KEY = 'bytes';
export const THREAD_PREFIX = 't/';
export const COMMENT_PREFIX = 'c/';

/** Key of a thread in the partition of its room, ordered by creation time, then id. */
export const threadKey = (createdAt: string, threadId: string): string => `t/${createdAt}~${threadId}`;
/** Key of a room in `roomsOf`. */
export const roomKey = (createdAt: string, roomId: string): string => `${createdAt}~${escapeId(roomId)}`;
/** In the partition of a room: the latest thread. A transaction that reads it conflicts with new threads only. */
export const NEWEST_KEY = 'newest';
/**
 * In the partition of a thread: the number of deleted comments, so that deletions conflict with each other and not with
 * new comments.
 */
export const DELETIONS_KEY = 'deletions';
