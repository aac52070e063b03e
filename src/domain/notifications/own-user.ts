import { CollabError } from '../../model/errors.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import { requireRead, requireWrite } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import { checkId } from '../input/bounds.ts';

/**
 * Throws `forbidden` unless the actor may read, or change, what belongs to a user alone: the inbox, settings and
 * subscriptions. A user may do so for themselves, whatever their role. A backend may do so for every user, but needs
 * the scope `full` to write. Throws `invalid_request` for an impossible id.
 */
export function requireOwnUser(actor: Actor, userId: string, access: 'read' | 'write'): void {
  if (actor.kind === 'user') {
    if (actor.userId !== userId)
      throw new CollabError('forbidden', 'A user token gives access to the notifications of its own user only');
  } else if (access === 'write') requireWrite(actor);
  else requireRead(actor);
  checkId('userId', userId, limitsOf(actor.environment));
}
