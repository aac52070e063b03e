import Type from 'typebox';
import { findEnvironment } from '../../domain/environments.ts';
import { presentKey, presentNewKey } from '../../domain/key-view.ts';
import { createKey, listKeys, revokeKey, rotateKey } from '../../domain/keys.ts';
import { KeyCreateSchema, KeyRotateSchema } from '../../model/key.ts';
import { ok, type Route } from '../route.ts';
import { deletedSchema, namedSchemas } from '../schemas.ts';

export const adminKeyRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/admin/environments/:environmentId/keys',
    operationId: 'admin.listKeys',
    summary: 'List the keys of an environment',
    description: 'Revoked and expired ones too.',
    credential: 'admin',
    access: 'read',
    answers: { 200: Type.Object({ items: Type.Array(namedSchemas.Key) }) },
    errors: ['environment_not_found'],
    handle: async (request) => {
      const keys = await listKeys(request.ctx, await findEnvironment(request.ctx, request.param('environmentId')));
      const now = request.ctx.clock.now();
      return ok(JSON.stringify({ items: keys.map((key) => presentKey(key, now)) }));
    },
  },
  {
    method: 'POST',
    path: '/admin/environments/:environmentId/keys',
    operationId: 'admin.createKey',
    summary: 'Make a key of an environment',
    description: 'The value of a secret key is shown this once and stored nowhere, so the request cannot be repeated for it.',
    credential: 'admin',
    access: 'create',
    body: KeyCreateSchema,
    answers: { 201: Type.Object({ key: namedSchemas.NewKey }) },
    errors: ['invalid_request', 'environment_not_found'],
    handle: async (request) => {
      const environment = await findEnvironment(request.ctx, request.param('environmentId'));
      return { status: 201, body: JSON.stringify({ key: presentNewKey(await createKey(request.ctx, environment, request.body)) }) };
    },
  },
  {
    method: 'DELETE',
    path: '/admin/keys/:keyId',
    operationId: 'admin.revokeKey',
    summary: 'Revoke a key',
    description: 'It stops working from the next request on, and stays in the list. Revoking it again changes nothing and is no error.',
    credential: 'admin',
    access: 'change',
    answers: { 200: deletedSchema },
    errors: ['key_not_found'],
    handle: async (request) => {
      await revokeKey(request.ctx, request.param('keyId'));
      return ok('{"deleted":true}');
    },
  },
  {
    method: 'POST',
    path: '/admin/keys/:keyId/rotate',
    operationId: 'admin.rotateKey',
    summary: 'Replace a key by a new one with the same rights',
    description: 'Both work during the overlap; then the old one expires.',
    credential: 'admin',
    access: 'create',
    body: KeyRotateSchema,
    answers: { 201: Type.Object({ key: namedSchemas.NewKey, replaces: Type.String({ description: 'Id of the old key.' }) }) },
    errors: ['invalid_request', 'key_not_found'],
    handle: async (request) => {
      const replaces = request.param('keyId');
      const made = await rotateKey(request.ctx, replaces, request.body);
      return { status: 201, body: JSON.stringify({ key: presentNewKey(made), replaces }) };
    },
  },
];
