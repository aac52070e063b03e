import type { Counter, Histogram, Metrics } from '../../observability/metrics.ts';
import type { Exchange } from './exchange.ts';

/** Methods with a label of their own. A client may send any word, and labels must stay few. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** Attachment types with a label. */
const UPLOAD_TYPES = new Set(['image', 'audio', 'video']);

/** The metrics of one route and method. */
interface RouteMetrics {
  readonly byStatus: Map<number, Counter>;
  readonly duration: Histogram;
}

/** Counts and times the requests of one process. Metrics are created once and then looked up without an allocation. */
export class RequestMeter {
  readonly #metrics: Metrics;
  readonly #templates: ReadonlyMap<string, string>;
  /** Method -> name of the route -> its metrics. */
  readonly #routes = new Map<string, Map<string, RouteMetrics>>();

  /**
   * @param templates name of a route -> its path, which becomes the label; other routes are labelled with their name
   */
  constructor(metrics: Metrics, templates: ReadonlyMap<string, string>) {
    this.#metrics = metrics;
    this.#templates = templates;
  }

  /** Counts a finished exchange: it was answered, or its client is gone. */
  finished({ head, route, status, startedAt }: Exchange): void {
    const metrics = this.#routes.get(head.method)?.get(route) ?? this.#create(head.method, route);
    const counter = metrics.byStatus.get(status) ?? this.#createCounter(metrics, head.method, route, status);
    counter.value += 1;
    metrics.duration.observe((performance.now() - startedAt) / 1000);
  }

  /** Counts a request that was refused because of a rate limit. `policy` as in `RateLimit-Policy`. */
  limited(policy: string): void {
    this.#metrics.counter('rate_limited_total', { policy }).value += 1;
  }

  /** Counts the bytes of a file that was uploaded. `type`: the type of the attachment. */
  uploaded(type: string, bytes: number): void {
    if (UPLOAD_TYPES.has(type)) this.#metrics.counter('uploads_bytes_total', { type }).value += bytes;
  }

  #create(method: string, route: string): RouteMetrics {
    const created: RouteMetrics = {
      byStatus: new Map(),
      duration: this.#metrics.histogram('http_request_duration_seconds', this.#labels(method, route)),
    };
    if (!METHODS.has(method)) return created;
    const byRoute = this.#routes.get(method) ?? new Map<string, RouteMetrics>();
    byRoute.set(route, created);
    this.#routes.set(method, byRoute);
    return created;
  }

  #createCounter(metrics: RouteMetrics, method: string, route: string, status: number): Counter {
    const labels = { ...this.#labels(method, route), status: status === 0 ? 'aborted' : String(status) };
    const counter = this.#metrics.counter('http_requests_total', labels);
    metrics.byStatus.set(status, counter);
    return counter;
  }

  #labels(method: string, route: string): { method: string; route: string } {
    return {
      method: METHODS.has(method) ? method : 'other',
      route: route === '' ? 'none' : (this.#templates.get(route) ?? route),
    };
  }
}
