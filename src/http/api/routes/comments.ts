import * as Type from 'typebox';
import {
  createComment,
  deleteComment,
  editComment,
  getComment,
  listComments,
} from '../../../domain/comments/comments.ts';
import { CommentCreateSchema, CommentPatchSchema } from '../../../model/comment.ts';
import { listParameters } from '../../openapi/list-parameters.ts';
import { includedParts, includeParameter, okWithUsers, pageWithUsers } from '../include.ts';
import { actingActor, actsForParameter } from './acts-for.ts';
import { ok, type Route } from '../route.ts';
import { deletedSchema, includedUsers, listWithUsers, namedSchemas } from '../../openapi/schemas.ts';

export const commentRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/threads/:threadId/comments',
    operationId: 'comments.list',
    summary: 'List the comments of a thread',
    description: 'Oldest first, unless `order` says otherwise.',
    credential: 'secret',
    access: 'read',
    list: true,
    conditions: 'log',
    query: [includeParameter('users'), ...listParameters('comments')],
    hasFileUrls: true,
    responses: { 200: listWithUsers(namedSchemas.Comment) },
    errors: ['invalid_request', 'invalid_cursor', 'thread_not_found'],
    handle: async (request) => {
      const included = includedParts(request, 'users');
      return pageWithUsers(
        request,
        included,
        await listComments(request.ctx, request.actor, request.param('threadId'), request.listQuery('comments')),
      );
    },
  },
  {
    method: 'GET',
    path: '/comments/:commentId',
    operationId: 'comments.get',
    summary: 'Get a comment',
    description: '`include=users` adds the names of its author, of mentioned users and of those who reacted.',
    credential: 'secret',
    access: 'read',
    query: [includeParameter('users')],
    hasFileUrls: true,
    responses: { 200: Type.Object({ comment: namedSchemas.Comment, users: includedUsers }) },
    errors: ['invalid_request', 'comment_not_found'],
    handle: async (request) => {
      const included = includedParts(request, 'users');
      return okWithUsers(request, included, await getComment(request.ctx, request.actor, request.param('commentId')));
    },
  },
  {
    method: 'POST',
    path: '/threads/:threadId/comments',
    operationId: 'comments.create',
    summary: 'Add a comment to a thread',
    description:
      'The author must be a known user, unless the environment does not require it (`requireKnownUsers`): ' +
      'on a new server, create the user first: PUT /users/{userId}. Mentioned users, and those who follow ' +
      'the thread, are notified.',
    credential: 'secret',
    access: 'create',
    body: CommentCreateSchema,
    idempotent: true,
    hasFileUrls: true,
    responses: { 201: Type.Object({ comment: namedSchemas.Comment }) },
    errors: ['invalid_request', 'unknown_user', 'content_rejected', 'thread_not_found', 'id_taken'],
    handle: (request) =>
      createComment(request.ctx, request.actor, request.param('threadId'), request.body, request.idempotency),
  },
  {
    method: 'PATCH',
    path: '/comments/:commentId',
    operationId: 'comments.update',
    summary: 'Edit a comment',
    description:
      'Fields that are absent stay as they are. The comment shows when it was edited (`editedAt`), unless ' +
      '`metadata` alone is changed, which needs no `body`.',
    credential: 'secret',
    access: 'change',
    body: CommentPatchSchema,
    hasFileUrls: true,
    responses: { 200: Type.Object({ comment: namedSchemas.Comment }) },
    errors: ['invalid_request', 'unknown_user', 'content_rejected', 'comment_not_found'],
    handle: async (request) =>
      ok(await editComment(request.ctx, request.actor, request.param('commentId'), request.body)),
  },
  {
    method: 'DELETE',
    path: '/comments/:commentId',
    operationId: 'comments.delete',
    summary: 'Delete a comment',
    description: 'Deleting the last comment of a thread deletes the thread too.',
    credential: 'secret',
    access: 'change',
    query: [actsForParameter],
    responses: { 200: deletedSchema },
    errors: ['invalid_request', 'unknown_user', 'comment_not_found'],
    handle: async (request) =>
      ok(await deleteComment(request.ctx, await actingActor(request), request.param('commentId'))),
  },
];
