/** What an export does with a kind of record. */
export type Treatment =
  /** It stands in the export. */
  | 'exported'
  /** An import makes it anew of what stands there. */
  | 'derived'
  /** It means nothing elsewhere. */
  | 'dropped';

interface RecordKind {
  readonly name: string;
  /** Matches the names of partitions; those of an environment without `e/<environment>/`. */
  readonly partition: RegExp;
  /** Matches the keys, where a partition holds several kinds. */
  readonly key?: RegExp;
  readonly treatment: Treatment;
}

/** Every kind of record outside of environments. */
const globalKinds: readonly RecordKind[] = [
  { name: 'environment', partition: /^envs$/, treatment: 'exported' },
  { name: 'slug of an environment', partition: /^slugs$/, treatment: 'derived' },
  { name: 'hash of an API key', partition: /^keyhash$/, treatment: 'derived' },
  { name: 'work on files', partition: /^filejobs$/, treatment: 'derived' },
  { name: 'leftovers of an environment', partition: /^leftovers$/, treatment: 'dropped' },
  // Admins belong to the server, not to an environment.
  { name: 'admin', partition: /^admins$/, treatment: 'dropped' },
  { name: 'session of an admin', partition: /^adminsess$/, treatment: 'dropped' },
  { name: 'failed login', partition: /^adminfail$/, treatment: 'dropped' },
  { name: 'consumer of events', partition: /^consumers$/, treatment: 'dropped' },
  { name: 'answer to a repeated request of an admin', partition: /^adminidem$/, treatment: 'dropped' },
];

/** Every kind of record in an environment. */
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
  { name: 'guard of deletions', partition: /^t\//, key: /^deletions$/, treatment: 'dropped' },
  { name: 'place of a comment', partition: /^c$/, treatment: 'derived' },
  { name: 'shared state', partition: /^p2p\//, key: /^(?:record|bytes)$/, treatment: 'exported' },
  { name: 'file', partition: /^files$/, treatment: 'exported' },
  { name: 'upload without a comment', partition: /^unlinked$/, treatment: 'derived' },
  { name: 'leftover of a deleted room', partition: /^removals$/, treatment: 'dropped' },
  { name: 'position of a consumer', partition: /^cursors$/, treatment: 'dropped' },
  { name: 'answer to a repeated request', partition: /^idem$/, treatment: 'dropped' },
];

/** The kind of a record by where it stands; undefined for one that this version does not know. Without a key, whether the partition is known. */
export function recordKind(partition: string, key?: string): RecordKind | undefined {
  const [, inside] = /^e\/[^/]+\/(.*)$/s.exec(partition) ?? [];
  const kinds = inside === undefined ? globalKinds : environmentKinds;
  return kinds.find((kind) => kind.partition.test(inside ?? partition) && (key === undefined || kind.key === undefined || kind.key.test(key)));
}
