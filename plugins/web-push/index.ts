import { createHash } from 'node:crypto';
import {
  definePlugin,
  type HookContext,
  type Payload,
  type PluginHost,
  type PluginNotification,
  type RouteResponse,
  type RouteRequest,
  UsageError,
} from '../../src/plugins/api.ts';
import { erasedUserOf } from '../shared/erased-user.ts';
import { type Config, ConfigSchema } from './config.ts';
import { createKeys, readKeys } from './keys.ts';
import { push, type PushJob, RETRY_DELAYS_MS } from './push.ts';
import {
  addSubscription,
  listSubscriptions,
  parseEndpoint,
  parseSubscription,
  readSubscription,
  removeAllOf,
  removeSubscription,
} from './subscriptions.ts';

/** Notifies browsers, also while the page is closed (docs/channels.md). */
export default definePlugin({
  name: 'web-push',
  version: '1.0.0',
  apiVersion: 1,
  config: ConfigSchema,
  setup(host) {
    const pushes = host.queue('pushes', (job, context, environment) => push(host, job, context, environment), {
      retryDelaysMs: RETRY_DELAYS_MS,
      concurrency: 32,
      groupConcurrency: 4,
    });
    host.action(
      'notification.created',
      async (event, { environment }) => {
        const notification = event.data as PluginNotification;
        const { id, userId, kind } = notification;
        const subscriptions = await listSubscriptions(host.kv(environment), userId);
        if (subscriptions.length === 0 || !(await host.data.wantsNotification(environment, userId, host.name, kind)))
          return;
        if (!(await host.data.passes(environment, 'notification.deliver', { channel: host.name, notification })))
          return;
        const jobs = subscriptions.map((subscription) => {
          const payload: PushJob & Payload = { userId, notificationId: id, subscription };
          return { id: `${id}:${shortHash(subscription.endpoint)}`, payload, group: shortHash(userId) };
        });
        await pushes.add(environment, jobs);
      },
      { whenKv: 'subscription/' },
    );
    host.action(
      'user.updated',
      async (event, { environment }) => {
        const erased = erasedUserOf(event);
        if (erased !== null) await removeAllOf(host.kv(environment), erased);
      },
      { whenKv: 'subscription/' },
    );
    registerRoutes(host);
    host.command(
      {
        name: 'keys',
        summary: 'Make the keys that identify your server to push services, and show the public one.',
        examples: ['collab web-push keys --env default'],
      },
      async ({ environment }) => {
        const {
          keys: { publicKey },
          isNew,
        } = await createKeys(host.kv(environment));
        return {
          json: { publicKey, created: isNew },
          text:
            `${isNew ? 'Made the keys' : 'These are the keys'} of environment ${environment.slug}. Browsers ` +
            `subscribe with the public key:\n\n  ${publicKey}\n\nGET ` +
            `${host.publicUrl}/api/v1/plugins/${host.name}/${environment.slug}/key returns it too.`,
        };
      },
    );
  },
});

/** `GET key`, and `GET`, `POST` and `DELETE subscription`, for the user of the token. */
function registerRoutes(host: PluginHost<Config>): void {
  const credential = 'user';
  host.route({ method: 'GET', path: 'key', credential }, async (_, { environment }) => {
    const keys = await readKeys(host.kv(environment));
    return keys === undefined
      ? refusal(404, 'Push messages are not set up in this environment')
      : jsonResponse(200, { publicKey: keys.publicKey });
  });
  host.route({ method: 'GET', path: 'subscription', credential }, (request, { environment }) =>
    refusing(async () => {
      const { endpoint } = request.query;
      if (endpoint === undefined) throw new UsageError('The query must have the endpoint of the subscription');
      return jsonResponse(200, {
        subscribed: (await readSubscription(host.kv(environment), userOf(request), endpoint)) !== undefined,
      });
    }),
  );
  host.route({ method: 'POST', path: 'subscription', credential }, (request, { environment }: HookContext<Config>) =>
    refusing(async () => {
      await addSubscription(host.kv(environment), userOf(request), parseSubscription(request.body));
      return jsonResponse(201, { subscribed: true });
    }),
  );
  host.route({ method: 'DELETE', path: 'subscription', credential }, (request, { environment }: HookContext<Config>) =>
    refusing(async () => {
      await removeSubscription(host.kv(environment), userOf(request), parseEndpoint(request.body));
      return jsonResponse(200, { deleted: true });
    }),
  );
}

/** Turns a mistake of the client into 400. */
async function refusing(handle: () => Promise<RouteResponse>): Promise<RouteResponse> {
  try {
    return await handle();
  } catch (error) {
    if (error instanceof UsageError) return refusal(400, error.message);
    throw error;
  }
}

function userOf({ userId }: RouteRequest): string {
  if (userId === null) throw new UsageError('A user token is required');
  return userId;
}

function jsonResponse(status: RouteResponse['status'], body: Payload): RouteResponse {
  return { status, body: JSON.stringify(body) };
}

function refusal(status: RouteResponse['status'], error: string): RouteResponse {
  return jsonResponse(status, { error });
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
