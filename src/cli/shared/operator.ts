import type { BackendActor } from '../../domain/access/actor.ts';
import type { Environment } from '../../model/environment.ts';

/** The operator at the command line, who may do everything in an environment. */
export function operator(environment: Environment): BackendActor {
  return { kind: 'backend', environment, keyId: 'cli', scope: 'full', rooms: null, via: 'cli' };
}
