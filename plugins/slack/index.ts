import {
  definePlugin,
  type NewJob,
  type Payload,
  type PluginEvent,
  type PluginNotification,
} from '../../src/plugins/api.ts';
import type { Place } from '../shared/comment-link.ts';
import { type Config, ConfigSchema, keyOf, targetsOf } from './config.ts';
import { post, type PostJob, RETRY_DELAYS_MS } from './post.ts';
import { isPosted, markPosted } from './posted.ts';

/** Posts comments to channels of Slack, Mattermost and Discord (docs/channels.md). */
export default definePlugin({
  name: 'slack',
  version: '1.0.0',
  apiVersion: 1,
  config: ConfigSchema,
  setup(host) {
    const posts = host.queue('posts', (job, context, environment) => post(host, job, context, environment), {
      retryDelaysMs: RETRY_DELAYS_MS,
      concurrency: 64,
      // Slack takes about one message per second and webhook: while one waits for that, those behind it spend no
      // attempts. Messages stay in order, unless one is tried again.
      groupConcurrency: 1,
      timeoutMs: 60_000,
    });
    for (const type of ['thread.created', 'comment.created'] as const) {
      host.action(type, async (event, { config, environment }) => {
        if (config.post === 'comments')
          await posts.add(environment, jobsFor(config, placeOf(event), type === 'thread.created'));
      });
    }
    host.action('notification.created', async (event, { config, environment }) => {
      if (config.post !== 'notifications') return;
      const notification = event.data as PluginNotification;
      const { userId, kind, commentId, createdAt } = notification;
      const jobs = jobsFor(config, notification, false);
      if (jobs.length === 0 || !(await host.data.wantsNotification(environment, userId, host.name, kind))) return;
      if (!(await host.data.passes(environment, 'notification.deliver', { channel: host.name, notification }))) return;
      const kv = host.kv(environment);
      if (await isPosted(kv, commentId, createdAt)) return;
      await posts.add(environment, jobs);
      await markPosted(kv, commentId, createdAt);
    });
  },
});

/** One job for each target that has the room. */
function jobsFor(config: Config, { roomId, threadId, commentId }: Place, startsThread: boolean): NewJob[] {
  return targetsOf(config, roomId).map((target) => {
    const key = keyOf(target);
    const payload: PostJob & Payload = { target: key, roomId, threadId, commentId, startsThread };
    return { id: `${key}:${commentId}`, payload, group: key };
  });
}

function placeOf({ type, roomId = '', threadId = '', data }: PluginEvent): Place {
  const { id } = type === 'thread.created' ? (data as { comment: { id: string } }).comment : (data as { id: string });
  return { roomId, threadId, commentId: id };
}
