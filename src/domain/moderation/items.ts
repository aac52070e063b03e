import { CollabError } from '../../model/errors.ts';
import { limitsOf } from '../../model/environments/environment.ts';
import type { ModerationItem } from '../../model/moderation.ts';
import { presentThread } from '../../model/thread.ts';
import { inScope } from '../../model/room.ts';
import type { Reader } from '../../ports/store.ts';
import { requireModerator, requireRead, requireRoomAccess } from '../access/access.ts';
import type { Actor } from '../access/actor.ts';
import type { Context } from '../context.ts';
import { checkId } from '../input/bounds.ts';
import type { ListQuery, Page } from '../lists/list-query.ts';
import { readPage } from '../lists/paging.ts';
import { moderationIndexOf, moderationOf } from '../records/partitions.ts';
import { parseRecord } from '../records/record.ts';
import { authorPrefix, findItem, readReports, publishedComment, statePrefix } from './queue.ts';

/**
 * A page of the moderation queue, oldest first by default: the items of the state in the query, `held` when absent.
 * Throws `forbidden`, `invalid_cursor`.
 */
export async function listItems(ctx: Context, actor: Actor, query: ListQuery): Promise<Page> {
  requireModerator(actor);
  const { state = 'held', userId, roomId } = query.filters;
  const isShown = (item: ModerationItem): boolean =>
    isReachable(actor, item) &&
    (userId === undefined || item.userId === userId) &&
    (roomId === undefined || item.roomId === roomId);
  return readPage(ctx.store, query, limitsOf(actor.environment).listHardCap, {
    partition: moderationOf(actor.environment.id),
    prefix: statePrefix(state),
    isFiltered: true,
    parse: ({ value }) => {
      const item = parseRecord<ModerationItem>(value);
      return isShown(item) ? item : null;
    },
    updatedAt: ({ decidedAt, createdAt }) => decidedAt ?? createdAt,
    readText: (item) => renderItem(ctx, actor.environment.id, item),
  });
}

/** An item with its reports, as `{"item":…}`. Throws `forbidden`, `moderation_item_not_found`. */
export async function getItem(ctx: Context, actor: Actor, itemId: string): Promise<string> {
  requireModerator(actor);
  const item = await requireItem(ctx.store, actor, itemId);
  return `{"item":${await renderItem(ctx, actor.environment.id, item)}}`;
}

/** An item that the actor may decide on. Throws `moderation_item_not_found`, `forbidden`. */
export async function requireItem(reader: Pick<Reader, 'get'>, actor: Actor, itemId: string): Promise<ModerationItem> {
  const item = await findItem(reader, actor.environment.id, itemId);
  if (item === undefined)
    throw new CollabError('moderation_item_not_found', 'The moderation queue has no item with this id');
  requireRoomAccess(actor, item.roomId);
  return item;
}

/**
 * A page of what a user has written and moderators hold or have rejected within 30 days, newest first by default. Users
 * see their own. Throws `forbidden`, `invalid_request`, `invalid_cursor`.
 */
export async function listHeldOf(ctx: Context, actor: Actor, userId: string, query: ListQuery): Promise<Page> {
  requireRead(actor);
  const limits = limitsOf(actor.environment);
  checkId('userId', userId, limits);
  if (actor.kind === 'user' && actor.userId !== userId)
    throw new CollabError('forbidden', 'Users see only their own held content');
  const environmentId = actor.environment.id;
  return readPage(ctx.store, query, limits.listHardCap, {
    partition: moderationIndexOf(environmentId),
    prefix: authorPrefix(userId),
    isFiltered: true,
    load: async ({ value: itemId }) => {
      const item = await findItem(ctx.store, environmentId, itemId);
      return item !== undefined && isShownToAuthor(actor, item) ? item : null;
    },
    updatedAt: ({ decidedAt, createdAt }) => decidedAt ?? createdAt,
    text: renderForAuthor,
  });
}

/** Who reported what is for moderators, until they have decided that it goes. */
function isShownToAuthor(actor: Actor, item: ModerationItem): boolean {
  return item.comment !== null && (item.kind !== 'report' || item.state === 'rejected') && isReachable(actor, item);
}

/** An item as its author sees it: without the reason for which it was held. */
function renderForAuthor({
  id,
  kind,
  state,
  roomId,
  threadId,
  commentId,
  comment,
  createdAt,
  decidedAt,
  rejection,
}: ModerationItem): string {
  return JSON.stringify({ id, kind, state, roomId, threadId, commentId, comment, createdAt, decidedAt, rejection });
}

/**
 * An item as moderators see it, with its latest reports, and of a report the comment as it was reported and as it is
 * now.
 */
async function renderItem({ store }: Context, environmentId: string, item: ModerationItem): Promise<string> {
  const {
    id,
    kind,
    state,
    roomId,
    threadId,
    commentId,
    userId,
    plugin,
    reason,
    createdAt,
    decidedAt,
    decidedBy,
    rejection,
    thread,
  } = item;
  const current = kind === 'report' ? await publishedComment(store, environmentId, item) : null;
  const before = kind === 'edit' ? await publishedComment(store, environmentId, item) : null;
  const reports = kind === 'report' ? await readReports(store, environmentId, item) : [];
  const view = {
    ...{ id, kind, state, roomId, threadId, commentId, userId, plugin, reason },
    comment: item.comment ?? current ?? before,
    current,
    before,
    thread: thread === null ? null : presentThread(thread, { commentCount: 1, updatedAt: thread.updatedAt }),
    reportCount: item.reports,
    reports,
    ...{ createdAt, decidedAt, decidedBy, rejection },
  };
  return JSON.stringify(view);
}

function isReachable({ rooms }: Actor, { roomId }: ModerationItem): boolean {
  return rooms === null || inScope(rooms, roomId);
}
