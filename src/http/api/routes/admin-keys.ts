import * as Type from 'typebox';
import { DELETED } from '../../../domain/deleted.ts';
import { createKeyAsAdmin, rotateKeyAsAdmin } from '../../../domain/admins/admin-creates.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { presentKey } from '../../../domain/access/key-view.ts';
import { listKeys, revokeKey } from '../../../domain/access/keys.ts';
import { KeyCreateSchema, KeyRotateSchema } from '../../../model/environments/key.ts';
import { ok, type Route } from '../route.ts';
import { deletedSchema, namedSchemas } from '../../openapi/schemas.ts';

export const adminKeyRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/admin/environments/:environmentId/keys',
    operationId: 'admin.listKeys',
    summary: 'List the keys of an environment',
    description: 'Includes revoked and expired keys.',
    credential: 'admin',
    access: 'read',
    responses: { 200: Type.Object({ items: Type.Array(namedSchemas.Key) }) },
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
    summary: 'Create a key of an environment',
    description:
      'The value of a secret key is returned only here, and again when the request is repeated with the ' +
      'same `Idempotency-Key`. The response is stored encrypted with the idempotency key, which should ' +
      'therefore be random.',
    credential: 'admin',
    access: 'create',
    idempotent: true,
    body: KeyCreateSchema,
    responses: { 201: Type.Object({ key: namedSchemas.NewKey }) },
    errors: ['invalid_request', 'environment_not_found'],
    handle: (request) =>
      createKeyAsAdmin(
        request.ctx,
        request.admin.admin,
        request.param('environmentId'),
        request.body,
        request.idempotency,
      ),
  },
  {
    method: 'DELETE',
    path: '/admin/keys/:keyId',
    operationId: 'admin.revokeKey',
    summary: 'Revoke a key',
    description:
      'The key stops working from the next request on and stays in the list. Revoking it again changes nothing and is not an error.',
    credential: 'admin',
    access: 'change',
    responses: { 200: deletedSchema },
    errors: ['key_not_found'],
    handle: async (request) => {
      await revokeKey(request.ctx, request.param('keyId'));
      return ok(DELETED);
    },
  },
  {
    method: 'POST',
    path: '/admin/keys/:keyId/rotate',
    operationId: 'admin.rotateKey',
    summary: 'Replace a key with a new one that has the same rights',
    description:
      'Both keys work during the overlap; then the old one expires. The value of the new key is returned as when a key is created.',
    credential: 'admin',
    access: 'create',
    idempotent: true,
    body: KeyRotateSchema,
    responses: {
      201: Type.Object({ key: namedSchemas.NewKey, replaces: Type.String({ description: 'Id of the old key.' }) }),
    },
    errors: ['invalid_request', 'key_not_found'],
    handle: (request) =>
      rotateKeyAsAdmin(request.ctx, request.admin.admin, request.param('keyId'), request.body, request.idempotency),
  },
];
