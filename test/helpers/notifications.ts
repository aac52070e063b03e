import type { Test } from 'tap';
import type { Context } from '../../src/domain/context.ts';
import { streamOf } from '../../src/domain/events/streams.ts';
import type { Environment } from '../../src/model/environments/environment.ts';
import type { Notification } from '../../src/model/notification.ts';
import { createLogger } from '../../src/observability/log.ts';
import { Consumers } from '../../src/workers/background/consumers.ts';
import { notificationConsumer } from '../../src/workers/background/notification-consumer.ts';
import { afterNow } from './after-now.ts';
import { until } from './cluster.ts';
import type { Tenant } from './service.ts';

/** The part of a background worker that notifies users. It stops at the end of the test. */
export async function startNotifying(t: Test, ctx: Context): Promise<Consumers> {
  const consumers = new Consumers([notificationConsumer(ctx)], {
    ctx,
    log: createLogger({ level: 'silent', name: 'background' }),
    startedAt: afterNow(ctx.clock),
  });
  t.teardown(() => consumers.stop());
  await consumers.start();
  return consumers;
}

/** Resolves once every event that an environment has now is handled, with those that this causes. */
export async function handled(consumers: Consumers, { store }: Context, environment: Environment): Promise<void> {
  for (;;) {
    const last = await store.lastSeq(streamOf(environment));
    await until(
      () =>
        Number.isFinite(consumers.lowestConsumerCursor(streamOf(environment))) &&
        consumers.lowestConsumerCursor(streamOf(environment)) >= last,
    );
    if ((await store.lastSeq(streamOf(environment))) === last) return;
  }
}

/** The answer of `GET /users/:userId/notifications`. */
export interface Inbox {
  readonly unreadCount: number;
  readonly items: readonly Notification[];
  readonly nextCursor?: string;
}

/** The inbox of a user, read with the secret key. */
export async function inboxOf(tenant: Tenant, userId: string, search = ''): Promise<Inbox> {
  const { status, json, text } = await tenant.request<Inbox>(
    'GET',
    `/users/${encodeURIComponent(userId)}/notifications${search}`,
  );
  if (status !== 200) throw new Error(text);
  return json;
}
