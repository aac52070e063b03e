/** The acts that the audit log records (docs/audit.md), each with what it means. */
export const auditActions = {
  'admin.create': 'An admin was created.',
  'admin.password': 'The password of an admin was changed.',
  'admin.remove': 'An admin was removed.',
  'admin.login': 'An admin logged in.',
  'admin.logout': 'An admin logged out.',
  'environment.create': 'An environment was created.',
  'environment.update': 'The name or the settings of an environment were changed.',
  'environment.delete': 'An environment was deleted. The details contain the head of its chain.',
  'environment.import': 'An environment was imported.',
  'server.restore': 'The data of the server was replaced by a backup.',
  'key.create': 'An API key was created.',
  'key.revoke': 'An API key was revoked.',
  'key.rotate': 'An API key was replaced by a new one.',
  'signing-key.create': 'A signing key was added.',
  'signing-key.remove': 'A signing key was removed.',
  'user.erase': 'The personal data of a user was erased.',
  'room.delete': 'A room was deleted with its threads.',
  'thread.update': 'A moderator or the operator changed a thread of another user.',
  'thread.delete': 'A moderator or the operator deleted a thread of another user.',
  'comment.update': 'A moderator or the operator edited a comment of another user.',
  'comment.delete': 'A moderator or the operator deleted a comment of another user.',
  'reaction.delete': 'A moderator removed a reaction of another user.',
  'upload.delete': 'The operator deleted an upload that no comment links.',
  'plugin.command': 'A command of a plugin changed what the plugin stores.',
  'moderation.approve': 'Held content was approved, or the reports of a comment were dismissed.',
  'moderation.reject': 'Held content was rejected, or a reported comment was deleted.',
} as const;
/** The name of an act. */
export type AuditAction = keyof typeof auditActions;

/**
 * The person or program behind an act. `id` is the id of an admin, key or user, or the name of the operating system's
 * user who ran a command; null for the server itself, and for a key or user that is not known.
 */
export interface AuditActor {
  readonly kind: 'admin' | 'key' | 'user' | 'cli' | 'system';
  readonly id: string | null;
}

/** The thing that an act changed. */
export interface AuditTarget {
  readonly kind:
    | 'admin'
    | 'environment'
    | 'server'
    | 'key'
    | 'signing-key'
    | 'user'
    | 'room'
    | 'thread'
    | 'comment'
    | 'reaction'
    | 'upload'
    | 'plugin'
    | 'moderation-item';
  readonly id: string;
}

/** Further details of an act, without secrets and personal data. */
export type AuditDetails = Readonly<Record<string, string | number | boolean | null>>;

/** A record of the audit log. Each contains the hash of the record before it, so that a change is found. */
export interface AuditRecord {
  /** Its position in its chain: 1, 2, 3, without gaps. */
  readonly seq: number;
  /** ISO 8601 time of the act. */
  readonly at: string;
  readonly actor: AuditActor;
  readonly action: AuditAction;
  readonly target: AuditTarget;
  readonly details: AuditDetails;
  /** The hash of the previous record; in the first one that of the empty log. */
  readonly prev: string;
  /** SHA-256 of the canonical form of the record, hex. */
  readonly hash: string;
}

/** The last record of a chain. */
export interface AuditHead {
  /** The number of records; 0 for an empty chain. */
  readonly seq: number;
  readonly hash: string;
}
