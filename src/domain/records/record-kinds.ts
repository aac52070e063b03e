/** The treatment of a kind of record in exports. */
export type ExportTreatment =
  /** It is in the export. */
  | 'exported'
  /** An import derives it from the exported records. */
  | 'derived'
  /** It is meaningless in another store. */
  | 'dropped';

interface RecordKind {
  readonly name: string;
  /** Matches the names of partitions, without the prefix `e/<environment>/`. */
  readonly partition: RegExp;
  /** Matches the keys, if a partition contains several kinds. */
  readonly key?: RegExp;
  readonly treatment: ExportTreatment;
}

/** All kinds of records outside environments. */
const globalKinds: readonly RecordKind[] = [
  { name: 'environment', partition: /^envs$/, treatment: 'exported' },
  { name: 'slug of an environment', partition: /^slugs$/, treatment: 'derived' },
  { name: 'hash of an API key', partition: /^keyhash$/, treatment: 'derived' },
  { name: 'file job', partition: /^filejobs$/, treatment: 'derived' },
  { name: 'unfinished work on an environment', partition: /^leftovers$/, treatment: 'dropped' },
  // Admins belong to the server, not to an environment.
  { name: 'admin', partition: /^admins$/, treatment: 'dropped' },
  { name: 'session of an admin', partition: /^adminsess$/, treatment: 'dropped' },
  { name: 'failed login', partition: /^adminfail$/, treatment: 'dropped' },
  { name: 'audit record of the server', partition: /^audit$/, treatment: 'dropped' },
  { name: 'end of the audit log of the server', partition: /^audithead$/, treatment: 'dropped' },
  { name: 'consumer of events', partition: /^consumers$/, treatment: 'dropped' },
  { name: 'lease of a worker', partition: /^leases$/, treatment: 'dropped' },
  { name: 'contents of a queue of a plugin', partition: /^pluginqueues$/, treatment: 'dropped' },
  { name: 'stored answer to an admin', partition: /^adminidem$/, treatment: 'dropped' },
];

/** All kinds of records in an environment. */
const environmentKinds: readonly RecordKind[] = [
  { name: 'API key', partition: /^keys$/, treatment: 'exported' },
  { name: 'last use of an API key', partition: /^keyuse$/, treatment: 'dropped' },
  { name: 'signing key', partition: /^signing$/, treatment: 'exported' },
  { name: 'user', partition: /^users$/, treatment: 'exported' },
  { name: 'order of users', partition: /^userorder$/, treatment: 'derived' },
  { name: 'count of what is stored', partition: /^usage$/, treatment: 'derived' },
  { name: 'order of rooms', partition: /^rooms$/, treatment: 'derived' },
  { name: 'room', partition: /^r\//, key: /^(?:room|stats)$/, treatment: 'exported' },
  { name: 'order of threads', partition: /^r\//, key: /^(?:t\/|newest$)/, treatment: 'derived' },
  { name: 'thread', partition: /^t\//, key: /^(?:thread|stats)$/, treatment: 'exported' },
  { name: 'comment', partition: /^t\//, key: /^c\//, treatment: 'exported' },
  { name: 'number of deleted comments', partition: /^t\//, key: /^deletions$/, treatment: 'dropped' },
  { name: 'comment index', partition: /^c$/, treatment: 'derived' },
  { name: 'shared state', partition: /^p2p\//, key: /^(?:record|bytes)$/, treatment: 'exported' },
  { name: 'chunk of a shared state', partition: /^p2pchunks\//, treatment: 'derived' },
  { name: 'unfinished write of a shared state', partition: /^p2pstages$/, treatment: 'dropped' },
  { name: 'file', partition: /^files$/, treatment: 'exported' },
  { name: 'upload without a comment', partition: /^unlinked$/, treatment: 'derived' },
  // Plugins keep what is meaningful in this server only: secrets shared with other servers, what they have sent
  // already.
  { name: 'storage of a plugin', partition: /^pk\//, treatment: 'dropped' },
  { name: 'job of a plugin', partition: /^pq\//, treatment: 'dropped' },
  { name: 'position of a consumer', partition: /^cursors$/, treatment: 'dropped' },
  { name: 'notification', partition: /^inbox\//, key: /^[nh]\//, treatment: 'exported' },
  {
    name: 'count and order of unread notifications',
    partition: /^inbox\//,
    key: /^(?:u\/|unread$)/,
    treatment: 'derived',
  },
  { name: 'notified users of a comment', partition: /^notified\//, treatment: 'derived' },
  { name: 'subscription to a thread', partition: /^followers\//, key: /^s\//, treatment: 'exported' },
  { name: 'participants of a thread', partition: /^followers\//, key: /^(?:p\/|complete$)/, treatment: 'derived' },
  { name: 'notification settings', partition: /^notifyset$/, treatment: 'exported' },
  { name: 'unfinished removal of a room', partition: /^removals$/, treatment: 'dropped' },
  {
    name: 'undecided item of the moderation queue',
    partition: /^moderation$/,
    key: /^(?:held|reported)\//,
    treatment: 'exported',
  },
  { name: 'decided item of the moderation queue', partition: /^moderation$/, key: /^decided\//, treatment: 'dropped' },
  { name: 'index of the moderation queue', partition: /^modindex$/, treatment: 'derived' },
  { name: 'report of a comment', partition: /^reports$/, treatment: 'exported' },
  // The audit log describes acts on one server. `collab audit export` exports it.
  { name: 'audit record', partition: /^audit$/, treatment: 'dropped' },
  { name: 'end of the audit log', partition: /^audithead$/, treatment: 'dropped' },
  { name: 'stored answer', partition: /^idem$/, treatment: 'dropped' },
];

/**
 * The kind of a record by its partition and key; undefined if this version does not know it. Without a key, some kind
 * that the partition can contain.
 */
export function recordKind(partition: string, key?: string): RecordKind | undefined {
  const [, inside] = /^e\/[^/]+\/(.*)$/s.exec(partition) ?? [];
  const kinds = inside === undefined ? globalKinds : environmentKinds;
  return kinds.find(
    (kind) =>
      kind.partition.test(inside ?? partition) && (key === undefined || kind.key === undefined || kind.key.test(key)),
  );
}
