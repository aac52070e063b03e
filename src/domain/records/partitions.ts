/**
 * The names of partitions and the format of keys. Arbitrary text (room ids, user ids) becomes part of a name only through
 * `escapeId`, so that names are printable ASCII and no id can lead into another partition.
 */

/** Text as a part of a partition name or key: percent-encoded UTF-8. Throws `URIError` on a lone surrogate. */
export const escapeId = (id: string): string => encodeURIComponent(id);

/** The inverse of `escapeId`. */
export const unescapeId = (escaped: string): string => decodeURIComponent(escaped);

/** envId -> Environment. */
export const ENVIRONMENTS = 'envs';
/** slug -> envId. */
export const SLUGS = 'slugs';
/** `<kind>~<environmentId>~<fileId>` -> owner: jobs of the background worker (file-jobs.ts). */
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
/** `u/<createdAt>~<escapeId(userId)>` -> escapeId(userId): users by creation time; `complete` -> '1' once all are in it (user-order.ts). */
export const userOrderOf = (environmentId: string): string => `e/${environmentId}/userorder`;
/** `total` and `u/<escapeId(userId)>` -> Usage (usage.ts); `counted` -> '1' once everything was counted (usage-count.ts). */
export const usageOf = (environmentId: string): string => `e/${environmentId}/usage`;
/** `<createdAt>~<escapeId(roomId)>` -> escapeId(roomId): rooms by creation time. */
export const roomsOf = (environmentId: string): string => `e/${environmentId}/rooms`;
/** `room` -> RoomRecord, `stats` -> RoomStats, `t/<createdAt>~<threadId>` -> threadId. Every change of a thread in the room also writes here. */
export const roomRecordsOf = (environmentId: string, roomId: string): string => `e/${environmentId}/r/${escapeId(roomId)}`;
/** `thread` -> ThreadRecord, `stats` -> ThreadStats, `c/…` -> Comment (comment-location.ts). */
export const threadRecordsOf = (environmentId: string, threadId: string): string => `e/${environmentId}/t/${threadId}`;
/** commentId -> `<threadId> <key in the partition of the thread>`, for comments whose id does not encode it (comment-location.ts). */
export const commentIndexOf = (environmentId: string): string => `e/${environmentId}/c`;
/** `record` -> P2pRecord, `bytes` -> the state as base64: separate, so that reading the version does not read the bytes. */
export const p2pOf = (environmentId: string, roomId: string): string => `e/${environmentId}/p2p/${escapeId(roomId)}`;
/** Removal id -> RoomRemoval: threads of deleted rooms whose comments are still to be removed. */
export const removalsOf = (environmentId: string): string => `e/${environmentId}/removals`;
/** fileId -> StoredFile. */
export const filesOf = (environmentId: string): string => `e/${environmentId}/files`;
/** fileId -> '1', for the files that no comment has linked yet, oldest first. */
export const unlinkedOf = (environmentId: string): string => `e/${environmentId}/unlinked`;
/** hash -> IdempotencyRecord. */
export const idempotencyRecordsOf = (environmentId: string): string => `e/${environmentId}/idem`;
/** Consumer -> StoredCursor: the positions of durable consumers in the stream of the environment (cursors.ts). */
export const cursorsOf = (environmentId: string): string => `e/${environmentId}/cursors`;

export const ROOM_KEY = 'room';
export const THREAD_KEY = 'thread';
export const STATS_KEY = 'stats';
export const P2P_RECORD_KEY = 'record';
export const P2P_BYTES_KEY = 'bytes';
export const THREAD_PREFIX = 't/';
export const COMMENT_PREFIX = 'c/';

/** Key of a thread in the partition of its room, ordered by creation time, then id. */
export const threadKey = (createdAt: string, threadId: string): string => `t/${createdAt}~${threadId}`;
/** Key of a room in `roomsOf`. */
export const roomKey = (createdAt: string, roomId: string): string => `${createdAt}~${escapeId(roomId)}`;
/** In the partition of a room: the latest thread. A transaction that reads it conflicts with new threads only. */
export const NEWEST_KEY = 'newest';
/** In the partition of a thread: the number of deleted comments, so that deletions conflict with each other and not with new comments. */
export const DELETIONS_KEY = 'deletions';
