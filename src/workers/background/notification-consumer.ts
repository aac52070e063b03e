import type { Context } from '../../domain/context.ts';
import { NOTIFICATIONS_CONSUMER } from '../../domain/notifications/explain.ts';
import { notifyingTypes, notifyOf } from '../../domain/notifications/notify.ts';
import type { BatchConsumer } from '../../domain/events/consumer.ts';

const RETRY_DELAYS_MS = [1_000, 10_000, 60_000];

/** Notifies users of comments, and removes the notifications of what was deleted (docs/notifications.md). */
export function notificationConsumer(ctx: Context): BatchConsumer {
  return {
    name: NOTIFICATIONS_CONSUMER,
    types: notifyingTypes,
    retryDelaysMs: RETRY_DELAYS_MS,
    handleBatch: (environment, events) => notifyOf(ctx, environment, events),
  };
}
