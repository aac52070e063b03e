import { requireChange, requireModerator, requireRead, requireWrite } from '../../domain/access/access.ts';
import type { ApiRequest } from './api-request.ts';
import type { Route } from './route.ts';

/**
 * Throws `forbidden` unless the actor may use the route, in the room if the path names one. On a route for admins or
 * the public there is no actor and nothing to check.
 */
export function requireScope(request: ApiRequest, route: Route): void {
  const { caller } = request;
  if (caller === null) return;
  const roomId = request.hasParam('roomId') ? request.param('roomId') : undefined;
  if (route.access === 'read') requireRead(caller, roomId);
  else if (route.access === 'create') requireWrite(caller, roomId);
  else if (route.access === 'moderate') requireModerator(caller);
  else if (route.access === 'own' && caller.kind === 'user') requireRead(caller, roomId);
  else if (route.access === 'own') requireWrite(caller, roomId);
  else requireChange(caller, roomId);
}
