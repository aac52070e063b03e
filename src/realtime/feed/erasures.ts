import { erasedUserOf } from '../../domain/users/erasure.ts';
import { CollabError } from '../../model/errors.ts';
import type { Services } from '../services.ts';
import { refuse } from '../socket/protocol.ts';

/**
 * Closes the sockets of erased users on this worker and removes those users from its rooms at once. Returns a function
 * that stops it.
 */
export function followErasures({ ctx, hub, connections, rooms }: Services): () => void {
  return ctx.store.follow((stream, event) => {
    const feed = hub.feeds.get(stream);
    if (feed === undefined || event === null) return;
    const userId = erasedUserOf(event.text);
    if (userId === null) return;
    for (const connection of connections.of(feed)) {
      if (connection.userId !== userId) continue;
      rooms.leaveAll(connection);
      refuse(connection.writer, new CollabError('forbidden', 'The user has been deleted'));
    }
    rooms.removeDisconnected(feed.environment.id, userId);
  });
}
