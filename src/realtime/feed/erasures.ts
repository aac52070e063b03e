import { erasedUserOf } from '../../domain/users/erasure.ts';
import { CollabError } from '../../model/errors.ts';
import { refuse } from '../socket/protocol.ts';
import type { Services } from '../session/services.ts';

/** Ends what users who are erased have open on this worker, and takes them out of its rooms at once. Returns the way to stop. */
export function followErasures({ ctx, hub, rooms }: Services): () => void {
  return ctx.store.follow((stream, event) => {
    const feed = hub.feeds.get(stream);
    if (feed === undefined || event === null) return;
    const userId = erasedUserOf(event.text);
    if (userId === null) return;
    for (const connection of feed.members) {
      if (connection.userId !== userId) continue;
      rooms.leaveAll(connection);
      refuse(connection.writer, new CollabError('forbidden', 'The user has been deleted'));
    }
    rooms.dropLost(feed.environment.id, userId);
  });
}
