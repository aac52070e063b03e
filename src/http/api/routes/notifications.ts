import * as Type from 'typebox';
import { listNotifications, markRead } from '../../../domain/notifications/inbox.ts';
import { getNotificationSettings, putNotificationSettings } from '../../../domain/notifications/settings.ts';
import { MAX_WITH_CONTENT, withContent } from '../../../domain/notifications/included-content.ts';
import { changeSubscription, getSubscription } from '../../../domain/notifications/subscriptions.ts';
import {
  NotificationSettingsPutSchema,
  NotificationsReadSchema,
  SubscriptionSchema,
} from '../../../model/notification.ts';
import { listParameters } from '../../openapi/list-parameters.ts';
import { namedSchemas } from '../../openapi/schemas.ts';
import { includedParts, includeParameter } from '../include.ts';
import { ok, page, type Route } from '../route.ts';

const OWN = 'With a user token: for its own user only (403 for any other).';

export const notificationRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/users/:userId/notifications',
    operationId: 'notifications.list',
    summary: 'List the notifications of a user',
    description:
      `${OWN} A credential that is confined to rooms gets and counts those of its rooms. With \`include\`, ` +
      `a page has at most ${MAX_WITH_CONTENT} notifications.`,
    credential: 'either',
    access: 'read',
    list: true,
    query: [includeParameter('content'), ...listParameters('notifications')],
    hasFileUrls: true,
    responses: {
      200: Type.Object({
        unreadCount: Type.Integer({ minimum: 0, description: 'How many notifications of the user are unread.' }),
        items: Type.Array(namedSchemas.Notification),
        nextCursor: Type.Optional(Type.String({ description: 'Cursor of the next page; absent on the last page.' })),
        comments: Type.Optional(
          Type.Record(Type.String(), namedSchemas.Comment, {
            description: 'With `include=content`: the comments, by id.',
          }),
        ),
        threads: Type.Optional(
          Type.Record(Type.String(), namedSchemas.Thread, {
            description: 'With `include=content`: their threads, by id.',
          }),
        ),
      }),
    },
    errors: ['invalid_request', 'invalid_cursor'],
    handle: async (request) => {
      const query = request.listQuery('notifications');
      const list = (limit: number | null) =>
        listNotifications(request.ctx, request.actor, request.param('userId'), { ...query, limit });
      if (!includedParts(request, 'content').has('content')) return page(await list(query.limit));
      const found = await list(Math.min(query.limit ?? MAX_WITH_CONTENT, MAX_WITH_CONTENT));
      return page({ ...found, text: await withContent(request.ctx, request.actor, found.text) });
    },
  },
  {
    method: 'POST',
    path: '/users/:userId/notifications/read',
    operationId: 'notifications.read',
    summary: 'Mark notifications as read',
    description: `Either \`ids\` or \`all\`. ${OWN}`,
    credential: 'either',
    access: 'own',
    body: NotificationsReadSchema,
    idempotent: true,
    responses: {
      200: Type.Object({ unreadCount: Type.Integer({ minimum: 0, description: 'How many are unread now.' }) }),
    },
    errors: ['invalid_request'],
    handle: (request) =>
      markRead(request.ctx, request.actor, request.param('userId'), request.body, request.idempotency),
  },
  {
    method: 'GET',
    path: '/users/:userId/notification-settings',
    operationId: 'notificationSettings.get',
    summary: 'Get which channels deliver which notifications to a user',
    description: `${OWN} Not allowed (403) for a key that is confined to rooms.`,
    credential: 'either',
    access: 'read',
    responses: { 200: namedSchemas.NotificationSettings },
    errors: ['invalid_request'],
    handle: async (request) => ok(await getNotificationSettings(request.ctx, request.actor, request.param('userId'))),
  },
  {
    method: 'PUT',
    path: '/users/:userId/notification-settings',
    operationId: 'notificationSettings.put',
    summary: 'Change which channels deliver which notifications to a user',
    description:
      'Channels and kinds that are absent keep their values; a kind that does not exist is refused (400). ' +
      `The name of a plugin is the name of its channel. ${OWN} Not allowed (403) for a key that is confined ` +
      'to rooms, and for tokens that such a key issued.',
    credential: 'either',
    access: 'own',
    body: NotificationSettingsPutSchema,
    responses: { 200: namedSchemas.NotificationSettings },
    errors: ['invalid_request'],
    handle: async (request) =>
      ok(await putNotificationSettings(request.ctx, request.actor, request.param('userId'), request.body)),
  },
  {
    method: 'GET',
    path: '/users/:userId/subscriptions/:threadId',
    operationId: 'subscriptions.get',
    summary: 'Get what a thread notifies a user of',
    description: OWN,
    credential: 'either',
    access: 'read',
    responses: { 200: namedSchemas.Subscription },
    errors: ['invalid_request', 'thread_not_found'],
    handle: async (request) =>
      ok(await getSubscription(request.ctx, request.actor, request.param('userId'), request.param('threadId'))),
  },
  {
    method: 'POST',
    path: '/threads/:threadId/subscription',
    operationId: 'subscriptions.change',
    summary: 'Subscribe a user to a thread, unsubscribe or mute it',
    description: OWN,
    credential: 'either',
    access: 'own',
    body: SubscriptionSchema,
    idempotent: true,
    responses: { 200: namedSchemas.Subscription },
    errors: ['invalid_request', 'unknown_user', 'thread_not_found'],
    handle: (request) =>
      changeSubscription(request.ctx, request.actor, request.param('threadId'), request.body, request.idempotency),
  },
];
