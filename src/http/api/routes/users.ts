import * as Type from 'typebox';
import { issueToken } from '../../../domain/access/issue-token.ts';
import { MAX_FOUND, MAX_LOOKUP_IDS, lookUpUsers } from '../../../domain/users/lookup.ts';
import { deleteUser, getUser, listUsers, putUser } from '../../../domain/users/users.ts';
import { TokenCreateSchema } from '../../../model/environments/token.ts';
import { UserPutSchema } from '../../../model/user.ts';
import { listParameters } from '../../openapi/list-parameters.ts';
import { ok, page, type Route } from '../route.ts';
import { deletedSchema, foundUsers, listOf, namedSchemas } from '../../openapi/schemas.ts';

const oneUser = Type.Object({ user: namedSchemas.User });

export const userRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/users',
    operationId: 'users.list',
    summary: 'List users',
    description: 'Not allowed (403) for a key that is confined to rooms.',
    credential: 'secret',
    access: 'read',
    list: true,
    query: listParameters('users'),
    responses: { 200: listOf(namedSchemas.User) },
    errors: ['invalid_request', 'invalid_cursor'],
    handle: async (request) => page(await listUsers(request.ctx, request.actor, request.listQuery('users'))),
  },
  {
    method: 'GET',
    path: '/user-lookup',
    operationId: 'users.lookup',
    summary: 'Look up names and pictures of users, by id or for a mention picker',
    description:
      'Give `id`, once for each user, or `q`. A credential that is confined to rooms needs `roomId` with ' +
      '`q`, and finds the users of that room: who wrote, is mentioned or is present there.',
    credential: 'either',
    access: 'read',
    query: [
      {
        name: 'id',
        schema: Type.Array(Type.String(), {
          maxItems: MAX_LOOKUP_IDS,
          description: 'Ids of users, at most 100; repeat the parameter for each.',
        }),
      },
      {
        name: 'q',
        schema: Type.String({
          maxLength: 256,
          description:
            'The name, a later word of it, or the id begins with this text, ignoring case, accents and forms of ' +
            'Unicode; an empty one finds all, by name. Of the newest 10 000 users.',
        }),
      },
      { name: 'roomId', schema: Type.String({ description: 'With `q`: only users of this room.' }) },
      {
        name: 'limit',
        schema: Type.Integer({
          minimum: 1,
          maximum: MAX_FOUND,
          default: 20,
          description: 'With `q`: the most users to return.',
        }),
      },
    ],
    responses: { 200: foundUsers },
    errors: ['invalid_request'],
    handle: async (request) => {
      const { search } = request;
      const limit = search.get('limit');
      const lookup = {
        ids: search.getAll('id'),
        q: search.get('q') ?? undefined,
        roomId: search.get('roomId') ?? undefined,
        limit: limit === null ? undefined : Number(limit),
      };
      return ok(await lookUpUsers(request.ctx, request.actor, lookup));
    },
  },
  {
    method: 'GET',
    path: '/users/:userId',
    operationId: 'users.get',
    summary: 'Get a user',
    description:
      'A key that is confined to rooms gets name, picture and kind: no `email`, empty `metadata`, `online` false and no times of visits.',
    credential: 'secret',
    access: 'read',
    responses: { 200: oneUser },
    errors: ['invalid_request', 'user_not_found'],
    handle: async (request) => ok(await getUser(request.ctx, request.actor, request.param('userId'))),
  },
  {
    method: 'PUT',
    path: '/users/:userId',
    operationId: 'users.put',
    summary: 'Create a user, or change the given fields',
    description:
      'A key that is confined to rooms can create users. For an existing user it gets 403 if a field would change or `email` is given.',
    credential: 'secret',
    access: 'create',
    body: UserPutSchema,
    responses: { 200: oneUser },
    errors: ['invalid_request'],
    handle: async (request) => ok(await putUser(request.ctx, request.actor, request.param('userId'), request.body)),
  },
  {
    method: 'DELETE',
    path: '/users/:userId',
    operationId: 'users.delete',
    summary: 'Erase the personal data of a user',
    description:
      'What the user wrote stays under their id. Their sockets are closed, and from then on earlier events ' +
      'are read without personal data. Not allowed (403) for a key that is confined to rooms.',
    credential: 'secret',
    access: 'create',
    responses: { 200: deletedSchema },
    errors: ['invalid_request', 'user_not_found'],
    handle: async (request) => ok(await deleteUser(request.ctx, request.actor, request.param('userId'))),
  },
  {
    method: 'POST',
    path: '/users/:userId/tokens',
    operationId: 'users.createToken',
    summary: 'Create a token with which a browser connects as a user',
    description:
      'Creates the user if it does not exist. Repeating the request creates another token, unless it has ' +
      'the same `Idempotency-Key`. A key that is confined to rooms creates tokens for its own rooms only, ' +
      'and gets 403 if `name` or `avatarUrl` would change an existing user. These tokens do not change ' +
      'notification settings and do not call routes of plugins, and their sockets and writes are counted ' +
      'apart from those of the user.',
    credential: 'secret',
    access: 'create',
    body: TokenCreateSchema,
    idempotent: true,
    responses: { 201: Type.Object({ token: Type.String(), expiresAt: Type.String({ format: 'date-time' }) }) },
    errors: ['invalid_request'],
    handle: (request) =>
      issueToken(request.ctx, request.actor, request.param('userId'), request.body, request.idempotency),
  },
];
