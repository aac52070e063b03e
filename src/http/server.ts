import type { TemplatedApp } from 'uWebSockets.js';
import type { Config } from '../config/schema.ts';
import type { Context } from '../domain/context.ts';
import type { Logger } from '../observability/log.ts';
import { ApiPipeline } from './api/pipeline.ts';
import { API_PREFIX } from './api/api-prefix.ts';
import { TrustedProxies } from '../net/trusted-proxies.ts';
import { OpenStreams } from './api/open-streams.ts';
import { Exchange } from './core/exchange.ts';
import { Files, FILES_PREFIX } from './files/files.ts';
import type { ServerStatus } from './health.ts';
import type { Metrics } from '../observability/metrics.ts';
import { type DemoPage, Pages } from './pages/pages.ts';
import { answerFailure } from './core/refusal.ts';
import { refusedBody } from './core/refused-body.ts';
import { RequestMeter } from './core/request-meter.ts';
import { apiRoutes } from './api/routes.ts';
import { UploadThrottle } from './api/upload-throttle.ts';

/** What the HTTP layer of one process works with. */
export interface HttpDeps {
  readonly ctx: Context;
  readonly config: Config;
  readonly log: Logger;
  /** Read at every answer: while draining, each is the last on its connection. */
  readonly status: ServerStatus;
  /** Served at `/` while `config.demo` is true. */
  readonly demo?: DemoPage | undefined;
  /** Milliseconds between two signs of life on a stream of events; 15 s when absent. */
  readonly streamHeartbeatMs?: number | undefined;
  /** Where requests are counted; absent while nobody asks. */
  readonly metrics?: Metrics | undefined;
  /** Called when more of a request's body has arrived, before it is handled. */
  readonly onInput?: (() => void) | undefined;
}

/** The HTTP layer of one process, attached. */
export interface Http {
  /** How many requests are not answered yet. */
  pending(): number;
  /** Ends the streams of events, which would never end by themselves, and those that are still to come. */
  endStreams(): void;
  /** Resolves once no request is pending, or after `withinMs` milliseconds; true in the first case. */
  settled(withinMs: number): Promise<boolean>;
}

const STREAM_HEARTBEAT_MS = 15_000;

/** Attaches everything that is served over HTTP. To be called after routes that are more particular, such as sockets. */
export function attachHttp(app: TemplatedApp, deps: HttpDeps): Http {
  const { ctx, config, log, status } = deps;
  const meter = deps.metrics === undefined ? null : new RequestMeter(deps.metrics, new Map(apiRoutes.map(({ operationId, path }) => [operationId, API_PREFIX + path])));
  const streams = new OpenStreams(deps.streamHeartbeatMs ?? STREAM_HEARTBEAT_MS);
  const uploads = new UploadThrottle(() => requests.pending - streams.size);
  const proxies = new TrustedProxies(config);
  const api = new ApiPipeline({ ctx, config, log, proxies, streams, uploads, meter }, apiRoutes);
  const pages = new Pages({ clock: ctx.clock, store: ctx.store, dataDir: config.dataDir, status, log }, config, deps.demo ?? null);
  const files = new Files({ ctx, config, log, proxies, meter });
  const requests = new Requests(log, meter);
  const options = { draining: () => status.draining, finished: (exchange: Exchange) => requests.finished(exchange), onInput: deps.onInput };

  app.any('/*', (response, request) => {
    const exchange = new Exchange(response, request, options);
    requests.started();
    if (exchange.head.ambiguous) exchange.drop();
    else if (refusedBody(exchange.head) !== null) answerFailure(log, exchange, refusedBody(exchange.head), [['X-Request-Id', exchange.id]]);
    else void (isApi(exchange.head.path) ? api : exchange.head.path.startsWith(FILES_PREFIX) ? files : pages).serve(exchange);
  });
  return { pending: () => requests.pending, endStreams: () => streams.endAll(), settled: (withinMs) => requests.settled(withinMs) };
}

function isApi(path: string): boolean {
  return path.startsWith(API_PREFIX) && (path.length === API_PREFIX.length || path.charCodeAt(API_PREFIX.length) === 0x2f);
}

/** The requests that are not answered yet. */
class Requests {
  pending = 0;
  readonly #log: Logger;
  readonly #meter: RequestMeter | null;
  #waiting: (() => void)[] = [];

  constructor(log: Logger, meter: RequestMeter | null) {
    this.#log = log;
    this.#meter = meter;
  }

  started(): void {
    this.pending += 1;
  }

  finished(exchange: Exchange): void {
    this.pending -= 1;
    this.#meter?.finished(exchange);
    if (this.#log.isLevelEnabled('debug')) this.#log.debug(lineOf(exchange), 'request');
    if (this.pending > 0) return;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  settled(withinMs: number): Promise<boolean> {
    if (this.pending === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const giveUp = setTimeout(() => resolve(false), withinMs);
      this.#waiting.push(() => {
        clearTimeout(giveUp);
        resolve(true);
      });
    });
  }
}

/** What the log says of a request: the route's name instead of the path, which may hold names of people and rooms. */
function lineOf({ id, head, route, status, startedAt }: Exchange): object {
  return { requestId: id, method: head.method, route, status, ms: Math.round((performance.now() - startedAt) * 10) / 10 };
}
