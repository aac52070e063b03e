import Type from 'typebox';
import { documentOf } from '../../openapi/document.ts';
import { ok, type Route } from '../route.ts';

/** The route of the OpenAPI document of `routes`, which may include this route. */
export function openapiRoute(routes: () => readonly Route[]): Route {
  let text: string | null = null;
  return {
    method: 'GET',
    path: '/openapi.json',
    operationId: 'openapi.get',
    summary: 'Get this document',
    credential: 'public',
    access: 'read',
    answers: { 200: Type.Object({}, { description: 'An OpenAPI 3.1 document.' }) },
    errors: [],
    handle: () => {
      text ??= JSON.stringify(documentOf(routes()));
      return Promise.resolve(ok(text));
    },
  };
}
