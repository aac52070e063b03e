import {
  type JobContext,
  Permanent,
  type Job,
  type PluginEnvironment,
  type PluginHost,
  type PluginNotification,
  RetryAfter,
} from '../../src/plugins/api.ts';
import webPush from 'web-push';
import { commentLink } from '../shared/comment-link.ts';
import { displayName, excerpt } from '../shared/comment-text.ts';
import type { Config } from './config.ts';
import { readKeys } from './keys.ts';
import { readSubscription, removeSubscription, type Subscription } from './subscriptions.ts';

const DAY_SECONDS = 86_400;
const MINUTE_MS = 60_000;
/** Waits before the second to fifth attempt. */
export const RETRY_DELAYS_MS: readonly number[] = [10_000, MINUTE_MS, 10 * MINUTE_MS, 60 * MINUTE_MS];
/** A push message has at most 4 096 bytes, of which encryption takes about 100: texts are cut far below that. */
const MAX_TEXT = 300;
const MAX_NAME = 80;
const MAX_URL = 1_000;

/** The payload of a job: a notification for one browser. */
export interface PushJob {
  readonly userId: string;
  readonly notificationId: string;
  /** The subscription at the time of the notification. */
  readonly subscription: Subscription;
}

/**
 * Pushes a notification to a browser. Resolves without a message if it was read or removed, the user lost the room, or
 * the browser belongs to the user no more, meanwhile. A subscription that the push service does not know (404, 410) is
 * removed.
 *
 * @throws Permanent if the push service refuses the message finally
 * @throws RetryAfter if it asks for a longer wait than planned
 * @throws Error otherwise: the queue tries again
 */
export async function push(
  host: PluginHost<Config>,
  { payload }: Job,
  { config, attempt }: JobContext<Config>,
  environment: PluginEnvironment,
): Promise<void> {
  const { userId, notificationId, subscription: former } = payload as unknown as PushJob;
  const kv = host.kv(environment);
  const subscription = await readSubscription(kv, userId, former.endpoint);
  if (subscription === undefined) return;
  const keys = await readKeys(kv);
  if (keys === undefined)
    throw new Permanent(`the environment has no keys: \`collab web-push keys --env ${environment.slug}\` makes them`);
  const notification = await host.data.notification(environment, userId, notificationId);
  const message =
    notification === undefined || notification.readAt !== null
      ? null
      : await messageOf(host, environment, config, notification);
  if (message === null) return;

  const { endpoint, headers, body } = webPush.generateRequestDetails(subscription, JSON.stringify(message), {
    vapidDetails: { subject: config.subject, ...keys },
    TTL: DAY_SECONDS,
    // A push service replaces an undelivered message of the same topic.
    topic: topicOf(notificationId),
  });
  const text = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  const { status, retryAfterMs } = await host.http.request(endpoint, { method: 'POST', headers: text, body });
  if (status >= 200 && status < 300) return;
  const reason = `${new URL(endpoint).host} answered ${status}`;
  if (status === 404 || status === 410) {
    await removeSubscription(kv, userId, endpoint);
    host.log.info(
      { environment: environment.slug, user: userId, reason },
      'a push subscription has ended and was removed',
    );
    return;
  }
  const fields = { environment: environment.slug, user: userId, reason };
  if (status !== 429 && status < 500) {
    host.log.error(fields, 'a push message was refused');
    throw new Permanent(reason);
  }
  const planned = RETRY_DELAYS_MS[attempt - 1];
  if (planned === undefined) host.log.error(fields, 'a push message was not sent after its last attempt');
  throw retryAfterMs !== null && planned !== undefined && retryAfterMs > planned
    ? new RetryAfter(reason, retryAfterMs)
    : new Error(reason);
}

/** The payload for the service worker of the page; null if the comment does not exist any more. */
async function messageOf(
  { data }: PluginHost<Config>,
  environment: PluginEnvironment,
  config: Config,
  notification: PluginNotification,
): Promise<object | null> {
  const { id, kind, actorId, roomId, threadId, commentId } = notification;
  const comment = await data.comment(environment, commentId);
  if (comment === undefined) return null;
  const author = excerpt(await displayName(data, environment, actorId), MAX_NAME);
  const url = commentLink(config.linkTemplate, { roomId, threadId, commentId });
  return {
    title: `${author} ${kind === 'mention' ? 'mentioned you' : 'replied'}`,
    body: excerpt(comment.body, MAX_TEXT),
    url: url === null || url.length > MAX_URL ? null : url,
    notificationId: id,
    threadId,
    commentId,
  };
}

function topicOf(notificationId: string): string {
  return notificationId.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(-32);
}
