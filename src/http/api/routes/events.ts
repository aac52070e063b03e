import * as Type from 'typebox';
import type { Actor } from '../../../domain/access/actor.ts';
import { listEvents, parseEventsQuery } from '../../../domain/events/events.ts';
import { epochOf } from '../../../domain/events/streams.ts';
import { invalidField } from '../../../model/errors.ts';
import type { ApiRequest } from '../api-request.ts';
import { backendOf, lookUpKey } from '../authentication.ts';
import { EventStream, type StreamPosition } from '../event-stream.ts';
import { ok, type Route } from '../route.ts';
import { namedSchemas } from '../../openapi/schemas.ts';

export const eventRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/events',
    operationId: 'events.list',
    summary: 'Read the log of changes, or follow it',
    description:
      'With `Accept: text/event-stream`, the response is a stream of server-sent events. It starts after the position in `Last-Event-ID` ' +
      '(`<epoch>:<seq>`), or else after `since`, or else with the next event. In its first message, of the type `welcome`, `recovered` ' +
      'says whether all events after that position follow; if not, read all data again. A key that is ' +
      'confined to rooms gets the events of its rooms, and no events of users.',
    credential: 'secret',
    access: 'read',
    stream: true,
    query: [
      { name: 'since', schema: Type.Integer({ minimum: 0, default: 0, description: 'Events after this position.' }) },
      {
        name: 'limit',
        schema: Type.Integer({
          minimum: 1,
          maximum: 1000,
          default: 100,
          description: 'At most this many; fewer if they have more than 16 777 216 characters.',
        }),
      },
    ],
    hasFileUrls: true,
    responses: {
      200: Type.Object({
        items: Type.Array(namedSchemas.Event),
        epoch: Type.String({ description: 'Identifies the log. Positions of another epoch are not valid in it.' }),
        seq: Type.Integer({ minimum: 0, description: 'Position of the last event.' }),
        oldestSeq: Type.Integer({ minimum: 1, description: 'Position of the oldest event still kept.' }),
        nextSince: Type.Optional(
          Type.Integer({ description: 'The `since` of the next request; absent when no events remain.' }),
        ),
      }),
    },
    errors: ['invalid_request'],
    handle: async (request) => {
      if (wantsStream(request)) {
        await streamFor(request).start(resumePosition(request));
        return null;
      }
      const { since, limit } = parseEventsQuery(request.search);
      return ok(await listEvents(request.ctx, request.actor, since, limit));
    },
  },
];

function wantsStream({ head }: ApiRequest): boolean {
  const { method, accept } = head;
  return method === 'GET' && accept.includes('text/event-stream');
}

function streamFor(request: ApiRequest): EventStream {
  const { ctx, exchange, head, headers, services, actor } = request;
  const reauthenticate = async (): Promise<Actor> => backendOf(await lookUpKey(ctx, head.authorization));
  return new EventStream({
    store: ctx.store,
    exchange,
    headers,
    streams: services.streams,
    actor,
    reauthenticate,
    baseUrl: request.baseUrl(),
  });
}

function resumePosition({ head, search, ctx, actor }: ApiRequest): StreamPosition | null {
  if (head.lastEventId !== '') return parseEventId(head.lastEventId);
  return search.has('since')
    ? { epoch: epochOf(ctx.store, actor.environment), seq: parseEventsQuery(search).since }
    : null;
}

function parseEventId(text: string): StreamPosition {
  const [, epoch, seq] = /^([^:]{1,64}):(\d{1,15})$/.exec(text) ?? [];
  if (epoch === undefined || seq === undefined)
    throw invalidField('Last-Event-ID', 'must be <epoch>:<seq>, as in the ids of the stream', text);
  return { epoch, seq: Number(seq) };
}
