import * as Type from 'typebox';
import { createThread, deleteThread, getThread, listThreads, patchThread } from '../../../domain/comments/threads.ts';
import { ThreadCreateSchema, ThreadPatchSchema } from '../../../model/thread.ts';
import { listParameters } from '../../openapi/list-parameters.ts';
import { includedParts, includeParameter, okWithUsers, pageWithUsers } from '../include.ts';
import { actingActor, actsForParameter } from './acts-for.ts';
import { ok, type Route } from '../route.ts';
import { deletedSchema, includedUsers, listWithUsers, namedSchemas } from '../../openapi/schemas.ts';

export const threadRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/rooms/:roomId/threads',
    operationId: 'threads.list',
    summary: 'List the threads of a room',
    description: 'A room that was never used has no threads; it is not an error.',
    credential: 'secret',
    access: 'read',
    list: true,
    conditions: 'log',
    query: [includeParameter('users'), ...listParameters('threads')],
    responses: { 200: listWithUsers(namedSchemas.Thread) },
    errors: ['invalid_request', 'invalid_cursor'],
    handle: async (request) => {
      const included = includedParts(request, 'users');
      return pageWithUsers(
        request,
        included,
        await listThreads(request.ctx, request.actor, request.param('roomId'), request.listQuery('threads')),
      );
    },
  },
  {
    method: 'POST',
    path: '/rooms/:roomId/threads',
    operationId: 'threads.create',
    summary: 'Create a thread with its first comment',
    description:
      'The author must be a known user, unless the environment does not require it (`requireKnownUsers`): ' +
      'on a new server, create the user first: PUT /users/{userId}. The room is created by its first ' +
      'thread.',
    credential: 'secret',
    access: 'create',
    body: ThreadCreateSchema,
    idempotent: true,
    hasFileUrls: true,
    responses: { 201: Type.Object({ thread: namedSchemas.CreatedThread }) },
    errors: ['invalid_request', 'unknown_user', 'content_rejected', 'id_taken'],
    handle: (request) =>
      createThread(request.ctx, request.actor, request.param('roomId'), request.body, request.idempotency),
  },
  {
    method: 'GET',
    path: '/threads/:threadId',
    operationId: 'threads.get',
    summary: 'Get a thread with all its comments',
    description: 'A thread of more than 16 777 216 characters is refused with 413; list its comments in pages instead.',
    credential: 'secret',
    access: 'read',
    query: [includeParameter('users')],
    hasFileUrls: true,
    responses: {
      200: Type.Object({
        thread: namedSchemas.Thread,
        comments: Type.Array(namedSchemas.Comment),
        users: includedUsers,
      }),
    },
    errors: ['invalid_request', 'thread_not_found', 'payload_too_large'],
    handle: async (request) => {
      const included = includedParts(request, 'users');
      return okWithUsers(request, included, await getThread(request.ctx, request.actor, request.param('threadId')));
    },
  },
  {
    method: 'PATCH',
    path: '/threads/:threadId',
    operationId: 'threads.update',
    summary: 'Resolve or reopen a thread, or replace its metadata',
    description:
      'A value that is set already is left unchanged; this is not an error. `userId` names the user who ' +
      'resolves the thread (`resolvedBy`).',
    credential: 'secret',
    access: 'change',
    body: ThreadPatchSchema,
    responses: { 200: Type.Object({ threadId: Type.String(), resolved: Type.Boolean() }) },
    errors: ['invalid_request', 'unknown_user', 'content_rejected', 'thread_not_found'],
    handle: async (request) =>
      ok(await patchThread(request.ctx, request.actor, request.param('threadId'), request.body)),
  },
  {
    method: 'DELETE',
    path: '/threads/:threadId',
    operationId: 'threads.delete',
    summary: 'Delete a thread and all its comments',
    description: 'Their reactions and attached files are deleted too. This cannot be undone.',
    credential: 'secret',
    access: 'change',
    query: [actsForParameter],
    responses: { 200: deletedSchema },
    errors: ['invalid_request', 'unknown_user', 'thread_not_found'],
    handle: async (request) =>
      ok(await deleteThread(request.ctx, await actingActor(request), request.param('threadId'))),
  },
];
