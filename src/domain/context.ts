import type { Clock } from '../lib/clock.ts';
import type { publicFetch } from '../lib/addresses/public-fetch.ts';
import type { Environment } from '../model/environment.ts';
import type { Via } from '../model/event.ts';
import type { RoomScope } from '../model/room.ts';
import type { KeyScope } from '../model/key.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { Media } from '../ports/media.ts';
import type { Shared } from '../ports/shared.ts';
import type { Store } from '../ports/store.ts';
import type { CrdtService } from './rooms/crdt.ts';

/** What every domain function works with. */
export interface Context {
  readonly store: Store;
  readonly shared: Shared;
  readonly clock: Clock;
  /** Where files are kept; absent where nothing is uploaded. */
  readonly blobs?: Blobs | undefined;
  /** What looks into files; as `blobs`. */
  readonly media?: Media | undefined;
  /** Gets the key sets (JWKS) of environments; `publicFetch` when absent. */
  readonly fetch?: typeof publicFetch | undefined;
  /** What merges shared states; absent where none are. */
  readonly crdt?: CrdtService | undefined;
}

/** A backend with a secret key. */
export interface BackendActor {
  readonly kind: 'backend';
  readonly environment: Environment;
  readonly keyId: string;
  readonly scope: KeyScope;
  readonly rooms: RoomScope;
  readonly via: Via;
}

/** A person in a browser, with a publishable key and a user token. */
export interface UserActor {
  readonly kind: 'user';
  readonly environment: Environment;
  readonly userId: string;
  readonly role: 'viewer' | 'member' | 'moderator';
  readonly rooms: RoomScope;
  readonly via: Via;
}

/** Who asks. A domain function takes it first after the context and checks what it may do. */
export type Actor = BackendActor | UserActor;
