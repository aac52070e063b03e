import type { UserSummary } from '../../model/user.ts';
import type { CollabError } from '../errors.ts';
import type { Requests } from '../session/requests.ts';
import type { ListedThread } from './base.ts';

/** Threads per request. Halved while a response would be too large. */
const PAGE = 200;

/** Everything in a room. */
export interface LoadedRoom {
  readonly threads: readonly ListedThread[];
  readonly users: Readonly<Record<string, UserSummary>>;
}

interface RoomPage {
  readonly threads: readonly ListedThread[];
  readonly users?: Readonly<Record<string, UserSummary>>;
  readonly nextCursor?: string;
}

/**
 * All threads of a room with their comments, page by page; empty for a room that nobody has used yet. The pages are
 * read one after the other, so apply the events that arrived meanwhile to the result. Rejects as the server refuses,
 * and with `network` if the connection is lost.
 */
export async function loadRoom(requests: Requests, roomId: string): Promise<LoadedRoom> {
  const threads: ListedThread[] = [];
  const users: Record<string, UserSummary> = {};
  let limit = PAGE;
  let cursor: string | undefined;
  for (;;) {
    try {
      const page = (await requests.request('room.get', {
        roomId,
        includeComments: true,
        includeUsers: true,
        limit,
        cursor,
      })) as RoomPage;
      threads.push(...page.threads);
      Object.assign(users, page.users);
      if (page.nextCursor === undefined) return { threads, users };
      cursor = page.nextCursor;
    } catch (thrown) {
      const { code } = thrown as CollabError;
      if (code === 'room_not_found') return { threads, users };
      if (code !== 'payload_too_large' || limit === 1) throw thrown;
      limit = Math.floor(limit / 2);
    }
  }
}
