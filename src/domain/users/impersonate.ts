import { limitsOf } from '../../model/environments/environment.ts';
import { confinedKeyOf, requireWrite } from '../access/access.ts';
import type { Actor, BackendActor, UserActor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { checkId } from '../input/bounds.ts';
import { requireKnownUser } from './users.ts';

/**
 * The user that a backend impersonates, within the rooms of its key: what the user does counts against the quotas of
 * the user. A key that may moderate makes a moderator of the user. Throws `forbidden`, `invalid_request`,
 * `unknown_user`.
 *
 * @param access what the key must allow
 */
export async function impersonate(
  ctx: Context,
  backend: BackendActor,
  userId: string,
  access: 'read' | 'create',
): Promise<UserActor> {
  const { environment, rooms, scope, via } = backend;
  const confinedKeyId = confinedKeyOf(backend);
  if (access === 'create') requireWrite(backend);
  checkId('userId', userId, limitsOf(environment));
  await requireKnownUser(ctx, environment, userId);
  return {
    kind: 'user',
    environment,
    userId,
    role: scope === 'read' ? 'member' : 'moderator',
    rooms,
    confinedKeyId,
    via,
  };
}

/**
 * The actor of an act for which a backend may name a user: events and `resolvedBy` name that user, the rights remain
 * those of the key. A user acts for nobody else: `userId` is ignored. Throws `invalid_request`, `unknown_user`.
 */
export async function actingFor(ctx: Context, actor: Actor, userId: string | undefined): Promise<Actor> {
  if (actor.kind === 'user' || userId === undefined) return actor;
  checkId('userId', userId, limitsOf(actor.environment));
  await requireKnownUser(ctx, actor.environment, userId);
  return { ...actor, actsFor: userId };
}
