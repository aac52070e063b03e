import type { TSchema } from 'typebox';
import { hasFilesInFolder, hasStoreInFolder } from '../config/engines.ts';
import type { Config } from '../config/schema.ts';
import { listNodes } from '../domain/nodes.ts';
import type { Context } from '../domain/context.ts';
import type { CoreApp } from '../net/core.ts';
import type { ReadBarrier } from '../net/read-barrier.ts';
import { TrustedProxies } from '../net/trusted-proxies.ts';
import type { Logger } from '../observability/log.ts';
import type { PluginRoute } from '../plugins/web/web-plugin.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Traces } from '../observability/traces.ts';
import { API_PREFIX } from './api/api-prefix.ts';
import { OpenStreams } from './api/open-streams.ts';
import { ApiPipeline } from './api/pipeline.ts';
import { pluginRoutes } from './api/plugin-routes.ts';
import type { Route } from './api/route.ts';
import { apiRoutes } from './api/routes.ts';
import { UploadThrottle } from './api/upload-throttle.ts';
import { bodyRefusal, tooManyChunks } from './core/body-rules.ts';
import { Exchange } from './core/exchange.ts';
import { sendError } from './core/send-error.ts';
import { RequestLoad } from './core/request-load.ts';
import { RequestMeter } from './core/request-meter.ts';
import { asyncapiDocument } from './openapi/asyncapi.ts';
import { RequestTracer } from './core/request-tracer.ts';
import { Files, FILES_PREFIX } from './files/files.ts';
import type { ServerStatus } from './health.ts';
import { type DemoPage, Pages } from './pages/pages.ts';
import { PendingRequests } from './pending-requests.ts';

/** Dependencies of the HTTP layer of one process. */
export interface HttpDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  /** Read at every response: while draining, each is the last on its connection. */
  readonly status: ServerStatus;
  /** Told of every complete response; absent if the store reads the log in every callback. */
  readonly barrier?: Pick<ReadBarrier, 'onResponse'> | undefined;
  /** Served at `/` while `config.demo` is true. */
  readonly demo?: DemoPage | undefined;
  /** Milliseconds between two heartbeats of an event stream; 15 s when absent. */
  readonly streamHeartbeatMs?: number | undefined;
  /** Where requests are counted; absent while nothing is measured. */
  readonly metrics?: Metrics | undefined;
  /** The schema of `data` of every message of the WebSocket, by type; absent where there is none. */
  readonly socketSchemas?: Readonly<Record<string, TSchema | null>> | undefined;
  /** Where requests are recorded as spans; absent while no traces are sent. */
  readonly traces?: Traces | null | undefined;
  /** The routes of plugins. */
  readonly plugins?: readonly PluginRoute[] | undefined;
}

/** The HTTP layer of one process, attached to its server. */
export interface Http {
  /** The number of requests that are not answered yet. */
  pending(): number;
  /** Ends the event streams, which have no end of their own, and those that are opened later. */
  endStreams(): void;
  /** Resolves with true once no request is pending, or with false after `withinMs` milliseconds. */
  whenIdle(withinMs: number): Promise<boolean>;
}

const STREAM_HEARTBEAT_MS = 15_000;

/**
 * Attaches everything that is served over HTTP. Call it after more specific routes, such as WebSockets, are attached.
 */
export function attachHttp(app: CoreApp, deps: HttpDeps): Http {
  const { ctx, config, log, status } = deps;
  const routes = [...apiRoutes, ...pluginRoutes(deps.plugins ?? [])];
  const templates = pathTemplates(routes);
  const meter = deps.metrics === undefined ? null : new RequestMeter(deps.metrics, templates);
  const tracer = deps.traces === undefined || deps.traces === null ? null : new RequestTracer(deps.traces, templates);
  const requests = new PendingRequests(log, meter, tracer);
  const proxies = new TrustedProxies(config);
  const streams = new OpenStreams(deps.streamHeartbeatMs ?? STREAM_HEARTBEAT_MS);
  const uploads = new UploadThrottle(() => requests.count - streams.size);

  const api = new ApiPipeline(
    { ctx, config, log, proxies, streams, uploads, asyncapi: asyncapiText(deps), meter },
    routes,
  );
  const files = new Files({ ctx, config, log, proxies, meter });
  const pages = new Pages(
    {
      clock: ctx.clock,
      store: ctx.store,
      blobs: ctx.blobs,
      dataDir: config.dataDir,
      probeShared: hasStoreInFolder(config) ? undefined : () => probeShared(ctx),
      hasFilesInFolder: hasFilesInFolder(config),
      status,
      log,
    },
    config,
    deps.demo ?? null,
  );

  const finished = (exchange: Exchange): void => {
    deps.barrier?.onResponse(exchange.hasUnreadBody);
    requests.finished(exchange);
  };
  const load = new RequestLoad((peer) => proxies.isProxy(peer));
  const refuseChunks = (exchange: Exchange): void =>
    sendError(log, exchange, tooManyChunks(), [['X-Request-Id', exchange.id]]);
  const options = { draining: () => status.draining, finished, load, refuseChunks };
  app.any('/*', (response, request) => {
    const exchange = new Exchange(response, request, options);
    requests.started();
    tracer?.started(exchange, request);
    if (exchange.head.ambiguous) return exchange.drop();
    const refusal = bodyRefusal(exchange.head);
    if (refusal !== null) return sendError(log, exchange, refusal, [['X-Request-Id', exchange.id]]);
    if (isApi(exchange.head.path)) void api.serve(exchange);
    else if (exchange.head.path.startsWith(FILES_PREFIX)) void files.serve(exchange);
    else void pages.serve(exchange);
  });
  return {
    pending: () => requests.count,
    endStreams: () => streams.endAll(),
    whenIdle: (withinMs) => requests.whenIdle(withinMs),
  };
}

function asyncapiText({ socketSchemas }: HttpDeps): (() => string) | null {
  let text: string | null = null;
  return socketSchemas === undefined ? null : () => (text ??= JSON.stringify(asyncapiDocument(socketSchemas)));
}

/** Name of a route -> its path, for metrics and traces. */
function pathTemplates(routes: readonly Route[]): ReadonlyMap<string, string> {
  return new Map(routes.map(({ operationId, path }) => [operationId, API_PREFIX + path]));
}

function isApi(path: string): boolean {
  return (
    path.startsWith(API_PREFIX) && (path.length === API_PREFIX.length || path.charCodeAt(API_PREFIX.length) === 0x2f)
  );
}

/** Rejects while the memory that the nodes share cannot be reached. */
async function probeShared(ctx: Context): Promise<void> {
  await listNodes(ctx);
  if (ctx.shared.isPartial?.() === true) throw new Error('the memory that the nodes share cannot be reached');
}
