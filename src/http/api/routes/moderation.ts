import * as Type from 'typebox';
import { approveItem, rejectItem } from '../../../domain/moderation/decisions.ts';
import { getItem, listHeldOf, listItems } from '../../../domain/moderation/items.ts';
import { reportComment } from '../../../domain/moderation/reports.ts';
import { RejectionSchema, ReportCreateSchema } from '../../../model/moderation.ts';
import { listParameters } from '../../openapi/list-parameters.ts';
import { listOf, namedSchemas } from '../../openapi/schemas.ts';
import { ok, page, type Route } from '../route.ts';

const oneReport = Type.Object({ report: namedSchemas.Report });
const decided = Type.Object({
  id: Type.String(),
  state: Type.Union([Type.Literal('approved'), Type.Literal('rejected')]),
});
const moderators = 'For secret keys of the scope `moderate` or `full`, and for users with the role `moderator`.';

export const moderationRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/comments/:commentId/report',
    operationId: 'comments.report',
    summary: 'Report a comment to the moderators',
    description: 'Counts once per user: a second report of the same user is answered with 200 and the first one.',
    credential: 'either',
    access: 'change',
    body: ReportCreateSchema,
    idempotent: true,
    responses: { 200: oneReport, 201: oneReport },
    errors: ['invalid_request', 'unknown_user', 'comment_not_found'],
    handle: (request) =>
      reportComment(request.ctx, request.actor, request.param('commentId'), request.body, request.idempotency),
  },
  {
    method: 'GET',
    path: '/users/:userId/held',
    operationId: 'users.listHeld',
    summary: 'List what a user wrote that is held for moderation or was rejected',
    description: 'Users see their own. Rejected content is listed for 30 days, with the reason of the rejection.',
    credential: 'either',
    access: 'read',
    list: true,
    query: listParameters('moderation').slice(0, 4),
    hasFileUrls: true,
    responses: { 200: listOf(namedSchemas.HeldContent) },
    errors: ['invalid_request', 'invalid_cursor'],
    handle: async (request) =>
      page(await listHeldOf(request.ctx, request.actor, request.param('userId'), request.listQuery('moderation'))),
  },
  {
    method: 'GET',
    path: '/moderation',
    operationId: 'moderation.list',
    summary: 'List the moderation queue',
    description: moderators,
    credential: 'either',
    access: 'moderate',
    list: true,
    query: listParameters('moderation'),
    hasFileUrls: true,
    responses: { 200: listOf(namedSchemas.ModerationItem) },
    errors: ['invalid_request', 'invalid_cursor'],
    handle: async (request) => page(await listItems(request.ctx, request.actor, request.listQuery('moderation'))),
  },
  {
    method: 'GET',
    path: '/moderation/:itemId',
    operationId: 'moderation.get',
    summary: 'Get an item of the moderation queue',
    description: moderators,
    credential: 'either',
    access: 'moderate',
    hasFileUrls: true,
    responses: { 200: Type.Object({ item: namedSchemas.ModerationItem }) },
    errors: ['moderation_item_not_found'],
    handle: async (request) => ok(await getItem(request.ctx, request.actor, request.param('itemId'))),
  },
  {
    method: 'POST',
    path: '/moderation/:itemId/approve',
    operationId: 'moderation.approve',
    summary: 'Approve held content, or dismiss the reports of a comment',
    description:
      'Held content is created as if just now, under its id, with its event and notifications. Approving it ' +
      `again changes nothing. ${moderators}`,
    credential: 'either',
    access: 'moderate',
    idempotent: true,
    responses: { 200: decided },
    errors: [
      'unknown_user',
      'moderation_item_not_found',
      'thread_not_found',
      'comment_not_found',
      'already_decided',
      'id_taken',
      'quota_exceeded',
    ],
    handle: (request) => approveItem(request.ctx, request.actor, request.param('itemId'), request.idempotency),
  },
  {
    method: 'POST',
    path: '/moderation/:itemId/reject',
    operationId: 'moderation.reject',
    summary: 'Reject held content, or delete a reported comment',
    description: `The author can read the reason. Rejecting it again changes nothing. ${moderators}`,
    credential: 'either',
    access: 'moderate',
    body: RejectionSchema,
    idempotent: true,
    responses: { 200: decided },
    errors: ['invalid_request', 'moderation_item_not_found', 'already_decided'],
    handle: (request) =>
      rejectItem(request.ctx, request.actor, request.param('itemId'), request.body, request.idempotency),
  },
];
