import * as Type from 'typebox';
import { listPresence } from '../../../domain/rooms/presence.ts';
import { deleteRoom } from '../../../domain/rooms/room-removal.ts';
import { getRoom, listRooms, patchRoom } from '../../../domain/rooms/rooms.ts';
import { RoomPatchSchema } from '../../../model/room.ts';
import { listParameters } from '../../openapi/list-parameters.ts';
import { withContentEtag } from '../list-etag.ts';
import { includedParts, includeParameter, pageWithUsers } from '../include.ts';
import { ok, page, type Route } from '../route.ts';
import { deletedSchema, includedUsers, listOf, namedSchemas } from '../../openapi/schemas.ts';

export const roomRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/rooms',
    operationId: 'rooms.list',
    summary: 'List all rooms',
    description: 'The rooms that have been used. Newest first, unless `order` says otherwise.',
    credential: 'secret',
    access: 'read',
    list: true,
    conditions: 'read',
    query: listParameters('rooms'),
    responses: { 200: listOf(namedSchemas.Room) },
    errors: ['invalid_request', 'invalid_cursor'],
    // A room can be created, and its metadata changed, without an event.
    handle: async (request) =>
      withContentEtag(request, page(await listRooms(request.ctx, request.actor, request.listQuery('rooms')))),
  },
  {
    method: 'GET',
    path: '/rooms/:roomId',
    operationId: 'rooms.get',
    summary: 'Get a room with its threads',
    description:
      'A room that nobody has used yet is empty, and its times are null; it is not an error. The threads ' +
      'are a list: without `limit`, up to 10 000 threads and 16 777 216 characters. `nextCursor` and `Link` ' +
      'are present while more remain.',
    credential: 'secret',
    access: 'read',
    query: [includeParameter('comments', 'users'), ...listParameters('threads')],
    hasFileUrls: true,
    responses: {
      200: Type.Object({
        room: namedSchemas.ReadRoom,
        threads: Type.Array(namedSchemas.ThreadWithComments),
        nextCursor: Type.Optional(
          Type.String({ description: 'Cursor of the next page of threads; absent on the last page.' }),
        ),
        users: includedUsers,
      }),
    },
    errors: ['invalid_request', 'invalid_cursor', 'payload_too_large'],
    handle: async (request) => {
      const included = includedParts(request, 'comments', 'users');
      const options = {
        includeComments: included.has('comments'),
        query: request.listQuery('threads'),
        emptyIfUnused: true,
      };
      return pageWithUsers(
        request,
        included,
        await getRoom(request.ctx, request.actor, request.param('roomId'), options),
      );
    },
  },
  {
    method: 'GET',
    path: '/rooms/:roomId/presence',
    operationId: 'rooms.presence',
    summary: 'List the users in a room',
    description:
      'One item per user, however many tabs are open, in the order in which the users joined. Empty for a room that does not exist. `partial` is true while the server cannot reach its shared memory on another machine: then the users of other servers, and of its other processes, are missing.',
    credential: 'secret',
    access: 'read',
    responses: {
      200: Type.Object({ items: Type.Array(namedSchemas.Presence), partial: Type.Optional(Type.Literal(true)) }),
    },
    errors: ['invalid_request'],
    handle: async (request) => ok(await listPresence(request.ctx, request.actor, request.param('roomId'))),
  },
  {
    method: 'PATCH',
    path: '/rooms/:roomId',
    operationId: 'rooms.update',
    summary: 'Replace the metadata of a room',
    description: 'The metadata sent replace all metadata that the room had.',
    credential: 'secret',
    access: 'create',
    body: RoomPatchSchema,
    responses: { 200: Type.Object({ room: namedSchemas.Room }) },
    errors: ['invalid_request', 'room_not_found'],
    handle: async (request) => ok(await patchRoom(request.ctx, request.actor, request.param('roomId'), request.body)),
  },
  {
    method: 'DELETE',
    path: '/rooms/:roomId',
    operationId: 'rooms.delete',
    summary: 'Delete a room, its threads and its shared state',
    description: 'An event reports each thread as deleted. The next thread in the room creates the room again.',
    credential: 'secret',
    access: 'change',
    responses: { 200: deletedSchema },
    errors: ['invalid_request', 'room_not_found'],
    handle: async (request) => ok(await deleteRoom(request.ctx, request.actor, request.param('roomId'))),
  },
];
