import Type from 'typebox';
import { getRoom, listRooms } from '../../domain/rooms.ts';
import { CollabError } from '../../errors.ts';
import { listParameters } from '../list-parameters.ts';
import { ok, page, type Route } from '../route.ts';
import { listOf, namedSchemas } from '../schemas.ts';

export const roomRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/rooms',
    operationId: 'rooms.list',
    summary: 'List all rooms',
    credential: 'secret',
    access: 'read',
    list: true,
    query: listParameters('rooms'),
    answers: { 200: listOf(namedSchemas.Room) },
    errors: ['invalid_request', 'invalid_cursor'],
    handle: async (request) => page(await listRooms(request.ctx, request.actor, request.listQuery('rooms'))),
  },
  {
    method: 'GET',
    path: '/rooms/:roomId',
    operationId: 'rooms.get',
    summary: 'Get a room with its threads',
    credential: 'secret',
    access: 'read',
    query: [{ name: 'include', schema: Type.Literal('comments', { description: 'Adds `comments` to each thread.' }) }],
    answers: { 200: Type.Object({ room: namedSchemas.Room, threads: Type.Array(namedSchemas.ThreadWithComments) }) },
    errors: ['invalid_request', 'room_not_found'],
    handle: async (request) => {
      const include = request.search.get('include');
      if (include !== null && include !== 'comments') throw new CollabError('invalid_request', 'include must be comments');
      return ok(await getRoom(request.ctx, request.actor, request.param('roomId'), { includeComments: include !== null }));
    },
  },
];
