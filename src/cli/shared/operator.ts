import type { BackendActor } from '../../domain/access/actor.ts';
import type { Environment } from '../../model/environment.ts';

/** The actor of CLI commands. It may do everything in an environment. */
export function operatorActor(environment: Environment): BackendActor {
  return { kind: 'backend', environment, keyId: 'cli', scope: 'full', rooms: null, via: 'cli' };
}
