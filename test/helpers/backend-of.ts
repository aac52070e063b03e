import type { BackendActor } from '../../src/domain/access/actor.ts';
import type { Environment } from '../../src/model/environments/environment.ts';

/** A backend with a secret key of the scope full, which reaches all rooms of an environment. */
export function backendOf(environment: Environment): BackendActor {
  return { kind: 'backend', environment, keyId: 'key_1', scope: 'full', rooms: null, via: 'rest' };
}
