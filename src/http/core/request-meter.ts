import type { Counter, Histogram, Metrics } from '../../observability/metrics.ts';
import type { Exchange } from './exchange.ts';

/** Methods with a label of their own; a client may send any word. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const UPLOADED = new Set(['image', 'audio', 'video']);

/** What is measured of one route, by one method. */
interface Gauge {
  readonly byStatus: Map<number, Counter>;
  readonly duration: Histogram;
}

/** Counts and times the requests of one process. It looks up what it has made before and allocates nothing. */
export class RequestMeter {
  readonly #metrics: Metrics;
  readonly #templates: ReadonlyMap<string, string>;
  /** Method -> name of the route -> what is measured. */
  readonly #routes = new Map<string, Map<string, Gauge>>();

  /** @param templates name of a route -> its path, which is the label; a route that is not in it is labelled with its name */
  constructor(metrics: Metrics, templates: ReadonlyMap<string, string>) {
    this.#metrics = metrics;
    this.#templates = templates;
  }

  /** An exchange is over: it was answered, or its client is gone. */
  finished({ head, route, status, startedAt }: Exchange): void {
    const gauge = this.#routes.get(head.method)?.get(route) ?? this.#make(head.method, route);
    const counter = gauge.byStatus.get(status) ?? this.#makeCounter(gauge, head.method, route, status);
    counter.value += 1;
    gauge.duration.observe((performance.now() - startedAt) / 1000);
  }

  /** A request was refused for coming too often. `policy` as in `RateLimit-Policy`. */
  limited(policy: string): void {
    this.#metrics.counter('rate_limited_total', { policy }).value += 1;
  }

  /** A file was taken in. */
  uploaded(type: string, bytes: number): void {
    if (UPLOADED.has(type)) this.#metrics.counter('uploads_bytes_total', { type }).value += bytes;
  }

  #make(method: string, route: string): Gauge {
    const made: Gauge = { byStatus: new Map(), duration: this.#metrics.histogram('http_request_duration_seconds', this.#labels(method, route)) };
    if (!METHODS.has(method)) return made;
    const ofMethod = this.#routes.get(method) ?? new Map<string, Gauge>();
    ofMethod.set(route, made);
    this.#routes.set(method, ofMethod);
    return made;
  }

  #makeCounter(gauge: Gauge, method: string, route: string, status: number): Counter {
    const labels = { ...this.#labels(method, route), status: status === 0 ? 'aborted' : String(status) };
    const counter = this.#metrics.counter('http_requests_total', labels);
    gauge.byStatus.set(status, counter);
    return counter;
  }

  #labels(method: string, route: string): { method: string; route: string } {
    return { method: METHODS.has(method) ? method : 'other', route: route === '' ? 'none' : (this.#templates.get(route) ?? route) };
  }
}
