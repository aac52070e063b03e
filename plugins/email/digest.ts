import {
  type JobContext,
  Permanent,
  type Job,
  type PluginEnvironment,
  type PluginHost,
  type PluginNotification,
} from '../../src/plugins/api.ts';
import { commentLink } from '../shared/comment-link.ts';
import { displayName, excerpt } from '../shared/comment-text.ts';
import type { Config } from './config.ts';
import { sendMail } from './mail.ts';
import { isPending, listPending, type Pending, removePending } from './pending.ts';
import { type Digest, type DigestItem, renderDigest } from './templates.ts';
import { unsubscribeUrl } from './unsubscribe.ts';

type Host = PluginHost<Config>;

const MAX_TEXT = 1_000;
const MAX_ROOM = 120;

/** The payload of a job: the notification whose time has come. */
export interface DigestJob {
  readonly userId: string;
  readonly notificationId: string;
}

/**
 * Mails a user the notification of this job with others that wait, at most `MAX_ITEMS`, unless it was mailed with an
 * earlier one. Leaves out what the user has read, and what is in a room where the user is now or which the user may not
 * see any more.
 *
 * Once the mail is accepted, or refused finally, all its notifications wait no more. If the last attempt fails
 * otherwise, only the one of this job is given up: each of the others has a job of its own.
 *
 * @param isLast whether a failure makes the job dead
 */
export async function runDigest(
  host: Host,
  job: Job,
  { config }: JobContext<Config>,
  environment: PluginEnvironment,
  isLast: boolean,
): Promise<void> {
  const { userId, notificationId } = job.payload as unknown as DigestJob;
  const kv = host.kv(environment);
  if (!(await isPending(kv, userId, notificationId))) return;
  const pending = await listPending(kv, userId, notificationId);
  const user = await host.data.user(environment, userId);
  const to = user?.email ?? null;
  const notifications = to === null ? [] : await itemsOf(host, environment, config, userId, pending);
  try {
    if (to !== null && notifications.length > 0) {
      const digest = digestOf(user?.name ?? userId, notifications, await unsubscribeUrl(host, environment, userId));
      await sendMail(config, {
        to,
        id: `${job.id}.${environment.id}`,
        ...(await renderDigest(digest, config.templates)),
        unsubscribeUrl: digest.unsubscribeUrl,
      });
    }
  } catch (error) {
    const isRefused = error instanceof Permanent;
    const isFinal = isLast || isRefused;
    const fields = {
      environment: environment.slug,
      user: userId,
      reason: error instanceof Error ? error.message : String(error),
    };
    if (isFinal) host.log.error(fields, 'a mail was not sent, and is not tried again');
    else host.log.warn(fields, 'a mail was not sent; it is tried again');
    if (isFinal) await removePending(kv, isRefused ? pending : [pending[0]]);
    throw error;
  }
  await removePending(kv, pending);
}

/** The values for the templates. */
export function digestOf(name: string, notifications: readonly DigestItem[], unsubscribe: string | null): Digest {
  const single = notifications.length === 1 ? (notifications[0] ?? null) : null;
  return { name, count: notifications.length, single, notifications, unsubscribeUrl: unsubscribe };
}

async function itemsOf(
  host: Host,
  environment: PluginEnvironment,
  config: Config,
  userId: string,
  pending: readonly Pending[],
): Promise<DigestItem[]> {
  const found = await Promise.all(
    pending.map(({ notificationId }) => host.data.notification(environment, userId, notificationId)),
  );
  const known = found
    .filter((notification) => notification !== undefined)
    .toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
  const items = await Promise.all(
    known.map(async (notification) =>
      (await isDue(host, environment, notification)) ? itemOf(host, environment, config, notification) : undefined,
    ),
  );
  return items.filter((item) => item !== undefined);
}

async function isDue(
  { name, data }: Host,
  environment: PluginEnvironment,
  notification: PluginNotification,
): Promise<boolean> {
  const { userId, kind, roomId, readAt } = notification;
  if (readAt !== null || (await data.isPresent(environment, userId, roomId))) return false;
  if (!(await data.wantsNotification(environment, userId, name, kind))) return false;
  return data.passes(environment, 'notification.deliver', { channel: name, notification });
}

async function itemOf(
  { data }: Host,
  environment: PluginEnvironment,
  config: Config,
  { kind, actorId, roomId, threadId, commentId, createdAt }: PluginNotification,
): Promise<DigestItem | undefined> {
  const comment = await data.comment(environment, commentId);
  if (comment === undefined) return undefined;
  return {
    author: await displayName(data, environment, actorId),
    did: kind === 'mention' ? 'mentioned you' : 'replied',
    room: excerpt(roomId, MAX_ROOM),
    text: comment.body === '' ? '(attachment)' : excerpt(comment.body, MAX_TEXT),
    url: commentLink(config.linkTemplate, { roomId, threadId, commentId }),
    time: `${createdAt.slice(0, 16).replace('T', ' ')} UTC`,
  };
}
