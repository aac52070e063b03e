import Type from 'typebox';
import { createThread, deleteThread, getThread, listThreads, patchThread } from '../../domain/threads.ts';
import { ThreadCreateSchema, ThreadPatchSchema } from '../../model/thread.ts';
import { listParameters } from '../list-parameters.ts';
import { ok, page, type Route } from '../route.ts';
import { deletedSchema, listOf, namedSchemas } from '../schemas.ts';

export const threadRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/rooms/:roomId/threads',
    operationId: 'threads.list',
    summary: 'List the threads of a room',
    description: 'A room that was never used has no threads and is no error.',
    credential: 'secret',
    access: 'read',
    list: true,
    conditions: 'log',
    query: listParameters('threads'),
    answers: { 200: listOf(namedSchemas.Thread) },
    errors: ['invalid_request', 'invalid_cursor'],
    handle: async (request) => page(await listThreads(request.ctx, request.actor, request.param('roomId'), request.listQuery('threads'))),
  },
  {
    method: 'POST',
    path: '/rooms/:roomId/threads',
    operationId: 'threads.create',
    summary: 'Create a thread with its first comment',
    credential: 'secret',
    access: 'create',
    body: ThreadCreateSchema,
    idempotent: true,
    answers: { 201: Type.Object({ thread: namedSchemas.CreatedThread }) },
    errors: ['invalid_request', 'unknown_user', 'id_taken'],
    handle: (request) => createThread(request.ctx, request.actor, request.param('roomId'), request.body, request.idempotency),
  },
  {
    method: 'GET',
    path: '/threads/:threadId',
    operationId: 'threads.get',
    summary: 'Get a thread with all its comments',
    description: 'One that is longer than 16 777 216 characters is refused with 413: list its comments in pages.',
    credential: 'secret',
    access: 'read',
    answers: { 200: Type.Object({ thread: namedSchemas.Thread, comments: Type.Array(namedSchemas.Comment) }) },
    errors: ['thread_not_found', 'payload_too_large'],
    handle: async (request) => ok(await getThread(request.ctx, request.actor, request.param('threadId'))),
  },
  {
    method: 'PATCH',
    path: '/threads/:threadId',
    operationId: 'threads.update',
    summary: 'Resolve or reopen a thread, or replace its metadata',
    description: 'What is so already is left alone, and is no error.',
    credential: 'secret',
    access: 'change',
    body: ThreadPatchSchema,
    answers: { 200: Type.Object({ threadId: Type.String(), resolved: Type.Boolean() }) },
    errors: ['invalid_request', 'thread_not_found'],
    handle: async (request) => ok(await patchThread(request.ctx, request.actor, request.param('threadId'), request.body)),
  },
  {
    method: 'DELETE',
    path: '/threads/:threadId',
    operationId: 'threads.delete',
    summary: 'Delete a thread with all its comments',
    credential: 'secret',
    access: 'change',
    answers: { 200: deletedSchema },
    errors: ['thread_not_found'],
    handle: async (request) => ok(await deleteThread(request.ctx, request.actor, request.param('threadId'))),
  },
];
