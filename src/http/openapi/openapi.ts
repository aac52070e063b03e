import { documentOf } from './document.ts';
import { apiRoutes } from '../api/routes.ts';

/** The OpenAPI 3.1 document of the API, ready for `JSON.stringify`. */
export function openapiDocument(): Readonly<Record<string, unknown>> {
  return documentOf(apiRoutes);
}
