import * as Type from 'typebox';
import { login, logout } from '../../../domain/admins/admin-sessions.ts';
import { LoginSchema } from '../../../model/environments/admin.ts';
import { ok, type Route } from '../route.ts';
import { deletedSchema, namedSchemas } from '../../openapi/schemas.ts';

export const adminAuthRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/admin/auth/login',
    operationId: 'admin.login',
    summary: 'Log in as an admin',
    description:
      'Admins are created on the command line: `collab admin create`. Limited to five requests per minute ' +
      'and address, counted separately ' +
      'from other requests, and to 20 failures per hour and account.',
    credential: 'public',
    access: 'create',
    rateLimit: 'login',
    body: LoginSchema,
    responses: { 200: namedSchemas.AdminSession },
    errors: ['invalid_request', 'invalid_login'],
    handle: async (request) => ok(JSON.stringify(await login(request.ctx, request.body))),
  },
  {
    method: 'POST',
    path: '/admin/auth/logout',
    operationId: 'admin.logout',
    summary: 'End the session',
    description: 'The token is not accepted any more.',
    credential: 'admin',
    access: 'change',
    responses: { 200: deletedSchema },
    errors: [],
    handle: async (request) => ok(await logout(request.ctx, request.admin)),
  },
  {
    method: 'GET',
    path: '/admin/auth/me',
    operationId: 'admin.me',
    summary: 'Get the admin of the session',
    description: 'The admin that the token belongs to.',
    credential: 'admin',
    access: 'read',
    responses: { 200: Type.Object({ admin: namedSchemas.Admin }) },
    errors: [],
    handle: (request) => Promise.resolve(ok(JSON.stringify({ admin: request.admin.admin }))),
  },
];
