import { documentOf } from './openapi-document.ts';
import { apiRoutes } from './routes.ts';

/** The OpenAPI 3.1 document of the API, ready for `JSON.stringify`. */
export function openapiDocument(): Readonly<Record<string, unknown>> {
  return documentOf(apiRoutes);
}
