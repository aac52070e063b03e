/**
 * Where records live: the names of partitions and the shape of keys. Arbitrary text (room ids, user ids) enters a name
 * only through `escapeId`, so that names stay printable ASCII and no id can reach into another partition.
 */

/** Text as a part of a partition name or key: percent-encoded UTF-8. Throws `URIError` on a lone surrogate. */
export const escapeId = (id: string): string => encodeURIComponent(id);

/** The id that `escapeId` made this of. */
export const unescapeId = (escaped: string): string => decodeURIComponent(escaped);

/** envId -> Environment. */
export const ENVIRONMENTS = 'envs';
/** slug -> envId. */
export const SLUGS = 'slugs';
/** `<kind>~<environmentId>~<fileId>` -> '1': work on files that is left to the background worker (file-jobs.ts). */
export const FILE_JOBS = 'filejobs';
/** envId -> Leftover: environments of which records or files are to be removed (leftovers.ts). */
export const UNFINISHED_WORK = 'leftovers';
/** SHA-256 of an API key, base64url -> KeyPointer. Written again whenever that key changes. */
export const KEY_HASHES = 'keyhash';
/** Hash of an email address -> StoredAdmin. */
export const ADMINS = 'admins';
/** SHA-256 of a session token, base64url -> AdminSession. */
export const ADMIN_SESSIONS = 'adminsess';
/** Hash of an email address, of an admin or not -> times of failed logins. */
export const ADMIN_FAILURES = 'adminfail';
/** `<adminId>~<hash>` -> IdempotencyRecord, sealed. */
export const ADMIN_IDEMPOTENCY = 'adminidem';
/** Name of a durable consumer -> when it was first started. */
export const CONSUMERS = 'consumers';

/** Prefix of every partition of an environment but the three first. */
export const environmentPrefix = (environmentId: string): string => `e/${environmentId}/`;

/** keyId -> StoredKey. */
export const keysOf = (environmentId: string): string => `e/${environmentId}/keys`;
/** keyId -> ISO time of its last use, to the minute. */
export const keyUsesOf = (environmentId: string): string => `e/${environmentId}/keyuse`;
/** kid -> SigningKey. */
export const signingKeysOf = (environmentId: string): string => `e/${environmentId}/signing`;
/** escapeId(userId) -> User. */
export const usersOf = (environmentId: string): string => `e/${environmentId}/users`;
/** `u/<createdAt>~<escapeId(userId)>` -> escapeId(userId): the order of users; `complete` -> '1' once all are in it (user-order.ts). */
export const userOrderOf = (environmentId: string): string => `e/${environmentId}/userorder`;
/** `total` and `u/<escapeId(userId)>` -> Usage (usage.ts); `counted` -> '1' once everything was counted (usage-count.ts). */
export const usageOf = (environmentId: string): string => `e/${environmentId}/usage`;
/** `<createdAt>~<escapeId(roomId)>` -> escapeId(roomId): the order of rooms. */
export const roomsOf = (environmentId: string): string => `e/${environmentId}/rooms`;
/** `room` -> RoomRecord, `stats` -> RoomStats, `t/<createdAt>~<threadId>` -> threadId. Every change of a thread of the room changes it. */
export const roomRecordsOf = (environmentId: string, roomId: string): string => `e/${environmentId}/r/${escapeId(roomId)}`;
/** `thread` -> ThreadRecord, `stats` -> ThreadStats, `c/…` -> Comment (comment-place.ts). */
export const threadRecordsOf = (environmentId: string, threadId: string): string => `e/${environmentId}/t/${threadId}`;
/** commentId -> `<threadId> <key in the partition of the thread>`, for comments whose id does not tell (comment-place.ts). */
export const commentIndexOf = (environmentId: string): string => `e/${environmentId}/c`;
/** `record` -> P2pRecord, `bytes` -> the state as base64: apart, so that asking for the version does not read the bytes. */
export const p2pOf = (environmentId: string, roomId: string): string => `e/${environmentId}/p2p/${escapeId(roomId)}`;
/** Id -> RoomRemoval: threads of deleted rooms whose comments are still to be removed. */
export const removalsOf = (environmentId: string): string => `e/${environmentId}/removals`;
/** fileId -> StoredFile. */
export const filesOf = (environmentId: string): string => `e/${environmentId}/files`;
/** fileId -> '1', of the files that no comment has linked yet, oldest first. */
export const unlinkedOf = (environmentId: string): string => `e/${environmentId}/unlinked`;
/** hash -> IdempotencyRecord. */
export const idempotencyRecordsOf = (environmentId: string): string => `e/${environmentId}/idem`;
/** How far durable consumers have come in the event stream of an environment. */
export const cursorsOf = (environmentId: string): string => `e/${environmentId}/cursors`;

export const ROOM_KEY = 'room';
export const THREAD_KEY = 'thread';
export const STATS_KEY = 'stats';
export const P2P_RECORD_KEY = 'record';
export const P2P_BYTES_KEY = 'bytes';
export const THREAD_PREFIX = 't/';
export const COMMENT_PREFIX = 'c/';

/** Key of a thread in the partition of its room; keys order by time, then id. */
export const threadKey = (createdAt: string, threadId: string): string => `t/${createdAt}~${threadId}`;
/** Key of a room in the order of rooms. */
export const roomKey = (createdAt: string, roomId: string): string => `${createdAt}~${escapeId(roomId)}`;
/** In the partition of a room: the thread made last. Read by what must exclude new threads and nothing else. */
export const NEWEST_KEY = 'newest';
/** In the partition of a thread: counts deletions of comments, so that they exclude each other and not creations. */
export const DELETIONS_KEY = 'deletions';
