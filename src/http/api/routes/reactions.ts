import * as Type from 'typebox';
import { addReaction, removeReaction } from '../../../domain/comments/reactions.ts';
import { ReactionCreateSchema } from '../../../model/reaction.ts';
import { actingActor, actsForParameter } from './acts-for.ts';
import { ok, type Route } from '../route.ts';
import { deletedSchema, namedSchemas } from '../../openapi/schemas.ts';

const oneReaction = Type.Object({ reaction: namedSchemas.Reaction });

export const reactionRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/comments/:commentId/reactions',
    operationId: 'reactions.create',
    summary: 'React to a comment',
    description: 'If the user has already reacted with this emoji, the response is 200 with the existing reaction.',
    credential: 'secret',
    access: 'create',
    body: ReactionCreateSchema,
    idempotent: true,
    responses: { 200: oneReaction, 201: oneReaction },
    errors: ['invalid_request', 'unknown_user', 'content_rejected', 'comment_not_found'],
    handle: (request) =>
      addReaction(request.ctx, request.actor, request.param('commentId'), request.body, request.idempotency),
  },
  {
    method: 'DELETE',
    path: '/reactions/:reactionId',
    operationId: 'reactions.delete',
    summary: 'Remove a reaction',
    description: 'By the id that adding it returned, which every comment shows in `reactions`.',
    credential: 'secret',
    access: 'change',
    query: [actsForParameter],
    responses: { 200: deletedSchema },
    errors: ['invalid_request', 'unknown_user', 'reaction_not_found'],
    handle: async (request) =>
      ok(await removeReaction(request.ctx, await actingActor(request), request.param('reactionId'))),
  },
];
