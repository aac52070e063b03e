import type { Clock } from '../lib/clock.ts';
import type { publicFetch } from '../lib/addresses/public-fetch.ts';
import type { AuditActor } from '../model/environments/audit.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { Filters, InboxFilter } from '../ports/filters.ts';
import type { Media } from '../ports/media.ts';
import type { Shared } from '../ports/shared.ts';
import type { Store } from '../ports/store.ts';
import type { StoreOperations } from '../ports/store-operations.ts';
import type { CrdtService } from './rooms/crdt.ts';

/** The dependencies of the domain functions. */
export interface Context {
  readonly store: Store;
  /** What workers and the CLI need of a store on this machine; undefined if the store is a server of its own. */
  readonly operations?: StoreOperations | undefined;
  readonly shared: Shared;
  readonly clock: Clock;
  /** Stores uploaded files; undefined in processes that handle none. */
  readonly blobs?: Blobs | undefined;
  /** Reads image, audio and video files; undefined wherever `blobs` is. */
  readonly media?: Media | undefined;
  /** Fetches the key sets (JWKS) of environments; `publicFetch` when absent. */
  readonly fetch?: typeof publicFetch | undefined;
  /** The filters of plugins; undefined if no plugin filters, and in processes that accept no writes of clients. */
  readonly filters?: Filters | undefined;
  /**
   * Decides which notifications the inbox shows, besides the settings of users; undefined if no plugin does, and in
   * processes that notify nobody.
   */
  readonly inboxFilter?: InboxFilter | undefined;
  /** Merges Yjs documents; undefined in processes that merge none. */
  readonly crdt?: CrdtService | undefined;
  /**
   * The admin or the user of the CLI that the audit log names; undefined where that is the actor of the request, or the
   * server.
   */
  readonly operator?: AuditActor | undefined;
  /** The base-2 logarithm of the cost of password hashes; that of passwords.ts when absent. Only tests set it. */
  readonly passwordLn?: number | undefined;
}

/** The blobs and media of a context. Throws if the process has none, which is a programming error. */
export function requireFileStorage({ blobs, media }: Context): { blobs: Blobs; media: Media } {
  if (blobs === undefined || media === undefined) throw new Error('this process keeps no files');
  return { blobs, media };
}

/** The CRDT service of a context. Throws if the process has none, which is a programming error. */
export function requireCrdt({ crdt }: Context): CrdtService {
  if (crdt === undefined) throw new Error('this process merges no documents');
  return crdt;
}
