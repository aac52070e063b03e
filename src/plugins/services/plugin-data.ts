import type { Context } from '../../domain/context.ts';
import type { BackendActor } from '../../domain/access/actor.ts';
import { findComment } from '../../domain/comments/find-comment.ts';
import { threadView } from '../../domain/comments/thread-view.ts';
import { environmentById } from '../../domain/environments/environments.ts';
import { parseEvent } from '../../domain/events/parse-event.ts';
import { readEvents } from '../../domain/events/read-events.ts';
import { readFollowers } from '../../domain/notifications/followers.ts';
import { findNotification } from '../../domain/notifications/notification-records.ts';
import { isDeliverable, readRecipient } from '../../domain/notifications/recipients.ts';
import { setPreference, wantsNotification } from '../../domain/notifications/settings.ts';
import { parseAnswer } from '../../domain/lists/answer-text.ts';
import { COMMENT_PREFIX, escapeId, threadRecordsOf, usersOf } from '../../domain/records/partitions.ts';
import { parseRecord } from '../../domain/records/record.ts';
import { presenceKey, presentUsers } from '../../domain/rooms/presence.ts';
import { getUser } from '../../domain/users/users.ts';
import { CollabError } from '../../model/errors.ts';
import type { Comment } from '../../model/comment.ts';
import type { Thread } from '../../model/thread.ts';
import type { User } from '../../model/user.ts';
import type { Data, FilterTypes, PluginEnvironment, PluginEvent } from '../api.ts';

const MAX_LIMIT = 1_000;

/** Runs the filters of a delivery and returns whether none rejects. */
export type RunDeliveryFilters = <N extends 'notification.deliver' | 'webhook.deliver'>(
  environment: PluginEnvironment,
  name: N,
  payload: FilterTypes[N]['payload'],
) => Promise<boolean>;

/** The reads of plugins. */
export function pluginData(ctx: Context, passes: RunDeliveryFilters): Data {
  return {
    passes,
    thread: async ({ id }, threadId) => {
      const view = await ifFound(() => threadView(ctx, id, threadId));
      return view === undefined ? undefined : (JSON.parse(view.text) as Thread);
    },
    comments: async ({ id }, threadId, { limit = 100, latest = false } = {}) => {
      const entries = await ifFound(() =>
        ctx.store.range(threadRecordsOf(id, threadId), {
          prefix: COMMENT_PREFIX,
          limit: checkLimit(limit),
          reverse: latest,
        }),
      );
      const comments = (entries ?? []).map(({ value }) => parseRecord<Comment>(value));
      return latest ? comments.toReversed() : comments;
    },
    comment: async ({ id }, commentId) => (await findComment(ctx.store, id, commentId))?.comment,
    user: async ({ id }, userId) => {
      if ((await ctx.store.get(usersOf(id), escapeId(userId))) === undefined) return undefined;
      const text = await ifFound(async () => getUser(ctx, await readerOf(ctx, id), userId));
      return text === undefined ? undefined : parseAnswer<{ user: User }>(text).user;
    },
    isPresent: async ({ id }, userId, roomId) =>
      (await presentUsers(ctx, presenceKey(id, roomId))).some(
        (user) => user.userId === userId && user.connectionIds.length > 0,
      ),
    notification: async ({ id }, userId, notificationId) => {
      const found = await findNotification(ctx.store, id, userId, notificationId);
      if (found === undefined) return undefined;
      const { user } = await readRecipient(ctx.store, id, userId);
      const { choices } = await readFollowers(ctx, id, found.threadId);
      return isDeliverable({ ...found, user, choice: choices.get(userId) }) ? found : undefined;
    },
    wantsNotification: ({ id }, userId, channel, kind) => wantsNotification(ctx.store, id, userId, channel, kind),
    setPreference: ({ id }, userId, channel, kind, enabled) => setPreference(ctx, id, userId, channel, kind, enabled),
    events: async ({ id }, since, limit) => {
      const environment = await environmentById(ctx, id);
      const events = await readEvents(ctx.store, environment, since, { limit: checkLimit(limit) });
      return events.map(({ text }) => parseEvent<PluginEvent>(text));
    },
  };
}

async function readerOf(ctx: Context, environmentId: string): Promise<BackendActor> {
  return {
    kind: 'backend',
    environment: await environmentById(ctx, environmentId),
    keyId: 'plugin',
    scope: 'read',
    rooms: null,
    via: 'rest',
  };
}

/** The result of `read`; undefined if it does not exist. */
async function ifFound<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof CollabError && error.kind.status === 404) return undefined;
    throw error;
  }
}

function checkLimit(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new Error(`limit must be a whole number from 1 to ${MAX_LIMIT}`);
  return limit;
}
