import type { ModerationItem } from '../../model/moderation.ts';
import type { Store } from '../../ports/store.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { moderationIndexOf, moderationOf } from '../records/partitions.ts';
import { hasHeldItems, listHeldItems } from './queue.ts';

const none: readonly ModerationItem[] = [];

/**
 * The held content that the actor of a read has written, oldest first: for a user what waits for a moderator, for a
 * backend nothing. Only within the rooms of the credential if the caller checks that. Read once per change of the
 * queue; nothing is read per request while the environment holds nothing.
 */
export async function ownHeld({ store }: Context, actor: Actor): Promise<readonly ModerationItem[]> {
  if (actor.kind === 'backend' || !(await holdsAnything(store, actor.environment.id))) return none;
  const { environment, userId } = actor;
  const partitions = [moderationIndexOf(environment.id), moderationOf(environment.id)];
  return store.cached(`held of ${userId} ${partitions[0]}`, partitions, () =>
    listHeldItems(store, environment.id, userId),
  );
}

function holdsAnything(store: Store, environmentId: string): Promise<boolean> {
  const index = moderationIndexOf(environmentId);
  return store.cached(`held any ${index}`, [index], () => hasHeldItems(store, environmentId));
}
