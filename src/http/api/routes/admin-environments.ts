import * as Type from 'typebox';
import { DELETED } from '../../../domain/deleted.ts';
import { createEnvironmentAsAdmin } from '../../../domain/admins/admin-creates.ts';
import {
  deleteEnvironment,
  findDeletable,
  findEnvironment,
  listEnvironments,
  updateEnvironment,
} from '../../../domain/environments/environments.ts';
import { EnvironmentCreateSchema, EnvironmentPatchSchema } from '../../../model/environments/environment.ts';
import { ok, type Route } from '../route.ts';
import { deletedSchema, namedSchemas } from '../../openapi/schemas.ts';

const oneEnvironment = Type.Object({ environment: namedSchemas.Environment });

export const adminEnvironmentRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/admin/environments',
    operationId: 'admin.listEnvironments',
    summary: 'List all environments',
    description: 'With their settings.',
    credential: 'admin',
    access: 'read',
    responses: { 200: Type.Object({ items: Type.Array(namedSchemas.Environment) }) },
    errors: [],
    handle: async (request) => ok(JSON.stringify({ items: await listEnvironments(request.ctx) })),
  },
  {
    method: 'POST',
    path: '/admin/environments',
    operationId: 'admin.createEnvironment',
    summary: 'Create an environment',
    description:
      'The environment gets a secret that signs user tokens (HS256, named by `jwtKid`), and no keys. The ' +
      'secret is returned only here, and again when the request is repeated with the same ' +
      '`Idempotency-Key`.',
    credential: 'admin',
    access: 'create',
    idempotent: true,
    body: EnvironmentCreateSchema,
    responses: {
      201: Type.Object({ environment: namedSchemas.Environment, jwtSecret: Type.String(), jwtKid: Type.String() }),
    },
    errors: ['invalid_request', 'slug_taken'],
    handle: (request) => createEnvironmentAsAdmin(request.ctx, request.admin.admin, request.body, request.idempotency),
  },
  {
    method: 'GET',
    path: '/admin/environments/:environmentId',
    operationId: 'admin.getEnvironment',
    summary: 'Get an environment',
    description: 'By its id or its slug.',
    credential: 'admin',
    access: 'read',
    responses: { 200: oneEnvironment },
    errors: ['environment_not_found'],
    handle: async (request) =>
      ok(JSON.stringify({ environment: await findEnvironment(request.ctx, request.param('environmentId')) })),
  },
  {
    method: 'PATCH',
    path: '/admin/environments/:environmentId',
    operationId: 'admin.updateEnvironment',
    summary: 'Change an environment',
    description:
      'Fields that are not given stay unchanged. The change applies in every worker from the next request on.',
    credential: 'admin',
    access: 'change',
    body: EnvironmentPatchSchema,
    responses: { 200: oneEnvironment },
    errors: ['invalid_request', 'environment_not_found'],
    handle: async (request) => {
      const { id } = await findEnvironment(request.ctx, request.param('environmentId'));
      return ok(JSON.stringify({ environment: await updateEnvironment(request.ctx, id, request.body) }));
    },
  },
  {
    method: 'DELETE',
    path: '/admin/environments/:environmentId',
    operationId: 'admin.deleteEnvironment',
    summary: 'Delete an environment and everything in it permanently',
    description: 'Its keys are not accepted any more, and its sockets are closed. This cannot be undone.',
    credential: 'admin',
    access: 'change',
    responses: { 200: deletedSchema },
    errors: ['environment_not_found'],
    handle: async (request) => {
      const { id } = await findDeletable(request.ctx, request.param('environmentId'));
      await deleteEnvironment(request.ctx, id);
      return ok(DELETED);
    },
  },
];
