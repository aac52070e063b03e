import * as Type from 'typebox';
import { listRecords } from '../../../domain/audit/audit.ts';
import { findEnvironment } from '../../../domain/environments/environments.ts';
import { parseEventsQuery } from '../../../domain/events/events.ts';
import { namedSchemas } from '../../openapi/schemas.ts';
import { ok, type Route } from '../route.ts';

export const adminAuditRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/admin/audit',
    operationId: 'admin.listAudit',
    summary: 'Read the audit log of the server or of an environment',
    description: 'Records are linked by their hashes: docs/audit.md describes how to verify them.',
    credential: 'admin',
    access: 'read',
    query: [
      {
        name: 'environment',
        schema: Type.String({ description: 'Id or slug of the environment; the log of the server when absent.' }),
      },
      { name: 'since', schema: Type.Integer({ minimum: 0, default: 0, description: 'Records after this position.' }) },
      {
        name: 'limit',
        schema: Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: 'At most this many.' }),
      },
    ],
    responses: {
      200: Type.Object({
        items: Type.Array(namedSchemas.AuditRecord),
        seq: Type.Integer({ minimum: 0, description: 'Position of the last record; 0 if there is none.' }),
        hash: Type.String({ description: 'Hash of the last record.' }),
        nextSince: Type.Optional(
          Type.Integer({ description: 'The `since` of the next request; absent when no records remain.' }),
        ),
      }),
    },
    errors: ['invalid_request', 'environment_not_found'],
    handle: async ({ ctx, search }) => {
      const environment = search.get('environment');
      const { since, limit } = parseEventsQuery(search);
      return ok(
        await listRecords(
          ctx,
          environment === null ? null : (await findEnvironment(ctx, environment)).id,
          since,
          limit,
        ),
      );
    },
  },
];
