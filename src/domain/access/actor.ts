import type { Environment } from '../../model/environments/environment.ts';
import type { Via } from '../../model/event.ts';
import type { KeyScope } from '../../model/environments/key.ts';
import type { Role } from '../../model/role.ts';
import type { RoomScope } from '../../model/room.ts';

/** A backend that authenticated with a secret key. */
export interface BackendActor {
  readonly kind: 'backend';
  readonly environment: Environment;
  readonly keyId: string;
  readonly scope: KeyScope;
  readonly rooms: RoomScope;
  /**
   * The user for whom it acts, if the request names one: what it changes is theirs in events, with the rights of the
   * key.
   */
  readonly actsFor?: string;
  readonly via: Via;
}

/** A user in a browser, authenticated with a publishable key and a user token. */
export interface UserActor {
  readonly kind: 'user';
  readonly environment: Environment;
  readonly userId: string;
  readonly role: Role;
  readonly rooms: RoomScope;
  /** Id of the key, confined to rooms, that issued the token or impersonates the user; null if there is none. */
  readonly confinedKeyId: string | null;
  readonly via: Via;
}

/** The client that makes a request. A domain function takes it right after the context and checks what it may do. */
export type Actor = BackendActor | UserActor;

/**
 * The actor of the operator: of CLI commands, and of what the server does by itself. It may do everything in an
 * environment.
 */
export function operatorActor(environment: Environment): BackendActor {
  return { kind: 'backend', environment, keyId: 'cli', scope: 'full', rooms: null, via: 'cli' };
}
