import * as Type from 'typebox';
import type { Actor } from '../../../domain/access/actor.ts';
import { actingFor } from '../../../domain/users/impersonate.ts';
import type { ApiRequest } from '../api-request.ts';
import type { Parameter } from '../route.ts';

/** The parameter with which a backend names the user for whom it deletes something. */
export const actsForParameter: Parameter = {
  name: 'userId',
  schema: Type.String({
    description: 'The user who deletes it, for events; must be a known user. Without it, the backend itself.',
  }),
};

/** The actor of a request with `actsForParameter`. Throws `invalid_request`, `unknown_user`. */
export function actingActor(request: ApiRequest): Promise<Actor> {
  return actingFor(request.ctx, request.actor, request.search.get('userId') ?? undefined);
}
