import { isUtf8 } from 'node:buffer';
import type { Environment } from '../../model/environments/environment.ts';
import { requireUnconfinedKey } from '../../domain/access/access.ts';
import { findEnvironment } from '../../domain/environments/environments.ts';
import { asError } from '../../lib/thrown.ts';
import { CollabError } from '../../model/errors.ts';
import type { RouteResponse } from '../../plugins/api.ts';
import { settingsIn } from '../../plugins/loading/settings.ts';
import type { PluginRoute } from '../../plugins/web/web-plugin.ts';
import type { Header } from '../../net/response-headers.ts';
import { routeNotFound } from '../core/send-error.ts';
import type { ApiRequest } from './api-request.ts';
import type { ApiResponse, Route } from './route.ts';

const MAX_BODY_BYTES = 64 * 1024;
const MAX_RESPONSE_LENGTH = 1024 * 1024;
const statuses = new Set([200, 201, 400, 401, 403, 404, 409, 410]);
const contentTypes = new Set(['application/json', 'text/html; charset=utf-8', 'text/plain; charset=utf-8']);

/**
 * The routes of plugins as routes of the API, at `/plugins/<plugin>/<environment slug>/<path>`: they go through the
 * same steps. Not part of the OpenAPI document, which is the same for every server.
 */
export function pluginRoutes(routes: readonly PluginRoute[]): Route[] {
  return routes.map((route) => {
    const { method, path, credential } = route.options;
    return {
      method,
      path: `/plugins/${route.plugin}/:environment/${path}`,
      operationId: `plugins.${route.plugin}.${method.toLowerCase()}.${path}`,
      summary: `A route of the plugin ${route.plugin}`,
      credential,
      access: method === 'GET' ? 'read' : 'create',
      ...(method === 'GET' ? {} : { maxTextBytes: MAX_BODY_BYTES }),
      responses: {},
      errors: [],
      handle: (request) => handle(request, route),
    };
  });
}

async function handle(request: ApiRequest, { plugin, settings, handle: run }: PluginRoute): Promise<ApiResponse> {
  const { id, slug } = await environmentOf(request);
  const { enabled, config } = settingsIn(settings, slug);
  if (!enabled) throw routeNotFound(request.head);
  if (!isUtf8(request.bytes)) throw new CollabError('invalid_request', 'The body must be UTF-8');
  const { caller, head, search } = request;
  if (caller?.kind === 'user') requireUnconfinedKey(caller, 'call routes of plugins');
  const call = {
    userId: caller?.kind === 'user' ? caller.userId : null,
    query: Object.fromEntries(search),
    body: request.bytes.toString('utf8'),
    headers: head.fields,
  };
  try {
    return responseOf(await run(call, { environment: { id, slug }, config }));
  } catch (thrown) {
    const error = asError(thrown);
    if (error.name === 'UsageError') throw new CollabError('invalid_request', error.message);
    request.services.log.error({ err: error, plugin, path: head.path }, 'a route of a plugin failed');
    throw new CollabError('internal', `The plugin ${plugin} failed`);
  }
}

/**
 * In a path, the environment of the credential: a page need not know its name, and no environment is called this.
 */
const OWN = '-';

/** The environment in the path, which must be that of the credential. */
async function environmentOf(request: ApiRequest): Promise<Environment> {
  const slug = request.param('environment');
  const own = request.caller?.environment;
  if (own !== undefined) {
    if (own.slug === slug || slug === OWN) return own;
    throw new CollabError(
      'environment_not_found',
      `The credential is not one of the environment ${slug.slice(0, 128)}`,
    );
  }
  const environment = await findEnvironment(request.ctx, slug);
  if (environment.slug !== slug) throw routeNotFound(request.head);
  if (environment.disabled) throw new CollabError('environment_disabled', 'The environment is disabled');
  return environment;
}

function responseOf({ status, body, contentType = 'application/json' }: RouteResponse): ApiResponse {
  if (!statuses.has(status) || !contentTypes.has(contentType) || typeof body !== 'string')
    throw new Error('the answer has a status, content type or body that the API does not allow');
  if (body.length > MAX_RESPONSE_LENGTH) throw new Error(`the answer is longer than ${MAX_RESPONSE_LENGTH} characters`);
  if (contentType === 'application/json') return { status, body };
  // Pages of plugins may not run scripts: they share the origin of the API.
  const policy = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; form-action 'self'";
  const head: Header = [
    'Content-Type',
    `${contentType}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n${policy}`,
  ];
  return { status, body, head };
}
