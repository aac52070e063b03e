import * as Type from 'typebox';
import { parseTtl, turnCredentials } from '../../../domain/access/turn-credentials.ts';
import { ok, type Route } from '../route.ts';
import { namedSchemas } from '../../openapi/schemas.ts';

export const turnRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/turn-credentials',
    operationId: 'turnCredentials.get',
    summary: 'Create short-lived TURN credentials',
    description:
      'Pass `iceServers` to `new RTCPeerConnection({ iceServers })` unchanged. Without a configured TURN ' +
      'server it contains only the STUN servers.',
    credential: 'either',
    access: 'read',
    query: [
      {
        name: 'ttl',
        schema: Type.Integer({
          minimum: 60,
          maximum: 86_400,
          default: 3600,
          description: 'Seconds for which the credentials are valid.',
        }),
      },
      {
        name: 'userId',
        schema: Type.String({
          minLength: 1,
          maxLength: 128,
          description:
            'The user, in a request of a backend; `backend` when absent. Ignored in a request of a user, who gets their own credentials.',
        }),
      },
    ],
    responses: { 200: namedSchemas.TurnCredentials },
    errors: ['invalid_request'],
    handle: ({ ctx, actor, config, search }) => {
      const credentials = turnCredentials(ctx, actor, config.turn, search.get('userId'), parseTtl(search.get('ttl')));
      return Promise.resolve(ok(JSON.stringify(credentials)));
    },
  },
];
