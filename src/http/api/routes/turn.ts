import Type from 'typebox';
import { parseTtl, turnCredentials } from '../../../domain/access/turn-credentials.ts';
import { ok, type Route } from '../route.ts';
import { namedSchemas } from '../../openapi/schemas.ts';

export const turnRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/turn-credentials',
    operationId: 'turnCredentials.get',
    summary: 'Make short-lived TURN credentials',
    description: 'Goes into `new RTCPeerConnection({ iceServers })` as it is. Without a configured TURN server it holds the STUN servers alone.',
    credential: 'either',
    access: 'read',
    query: [
      { name: 'ttl', schema: Type.Integer({ minimum: 60, maximum: 86_400, default: 3600, description: 'Seconds they are good for.' }) },
      { name: 'userId', schema: Type.String({ minLength: 1, maxLength: 128, description: 'For whom, when a backend asks; `backend` when absent. Users get their own.' }) },
    ],
    answers: { 200: namedSchemas.TurnCredentials },
    errors: ['invalid_request'],
    handle: ({ ctx, actor, config, search }) => {
      const credentials = turnCredentials(ctx, actor, config.turn, search.get('userId'), parseTtl(search.get('ttl')));
      return Promise.resolve(ok(JSON.stringify(credentials)));
    },
  },
];
