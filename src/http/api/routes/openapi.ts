import * as Type from 'typebox';
import { routeNotFound } from '../../core/send-error.ts';
import { documentOf } from '../../openapi/document.ts';
import { ok, type Route } from '../route.ts';

/** The route of the AsyncAPI document, which the services of the request have. */
export const asyncapiRoute: Route = {
  method: 'GET',
  path: '/asyncapi.json',
  operationId: 'openapi.getAsyncapi',
  summary: 'Get the document of the WebSocket',
  description: 'It describes the messages of the WebSocket, in AsyncAPI 3.0.',
  credential: 'public',
  access: 'read',
  responses: { 200: Type.Object({}, { description: 'An AsyncAPI 3.0 document.', additionalProperties: true }) },
  errors: [],
  handle: ({ services, head }) => {
    if (services.asyncapi === null) return Promise.reject(routeNotFound(head));
    return Promise.resolve(ok(services.asyncapi()));
  },
};

/** The route of the OpenAPI document of `routes`, which may include this route. */
export function openapiRoute(routes: () => readonly Route[]): Route {
  /** By the public address, of which a process has one. */
  const texts = new Map<string, string>();
  return {
    method: 'GET',
    path: '/openapi.json',
    operationId: 'openapi.get',
    summary: 'Get this document',
    description: 'It describes all operations of this server, in OpenAPI 3.1.',
    credential: 'public',
    access: 'read',
    responses: { 200: Type.Object({}, { description: 'An OpenAPI 3.1 document.', additionalProperties: true }) },
    errors: [],
    handle: ({ services }) => {
      const { publicUrl } = services.proxies;
      const text = texts.get(publicUrl) ?? JSON.stringify(documentOf(routes(), publicUrl));
      texts.set(publicUrl, text);
      return Promise.resolve(ok(text));
    },
  };
}
