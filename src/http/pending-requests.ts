import { withTimeout } from '../lib/concurrency/deadline.ts';
import type { Logger } from '../observability/log.ts';
import type { Exchange } from './core/exchange.ts';
import type { RequestMeter } from './core/request-meter.ts';
import type { RequestTracer } from './core/request-tracer.ts';

/** Counts the requests that are not answered yet, and logs, measures and traces each when it is finished. */
export class PendingRequests {
  readonly #log: Logger;
  readonly #meter: RequestMeter | null;
  readonly #tracer: RequestTracer | null;
  #count = 0;
  #onIdle: (() => void)[] = [];

  /**
   * @param meter null while nothing is measured
   * @param tracer null while no traces are sent
   */
  constructor(log: Logger, meter: RequestMeter | null, tracer: RequestTracer | null) {
    this.#log = log;
    this.#meter = meter;
    this.#tracer = tracer;
  }

  get count(): number {
    return this.#count;
  }

  started(): void {
    this.#count += 1;
  }

  finished(exchange: Exchange): void {
    this.#count -= 1;
    this.#meter?.finished(exchange);
    this.#tracer?.finished(exchange);
    if (this.#log.isLevelEnabled('debug')) this.#log.debug(logFields(exchange), 'request');
    if (this.#count > 0 || this.#onIdle.length === 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Resolves with true once no request is pending, or with false after `withinMs` milliseconds. */
  whenIdle(withinMs: number): Promise<boolean> {
    if (this.#count === 0) return Promise.resolve(true);
    const idle = new Promise<true>((resolve) => this.#onIdle.push(() => resolve(true)));
    return withTimeout(withinMs, idle, () => false);
  }
}

/** The route is logged instead of the path, which may contain names of users and rooms. */
function logFields({ id, head, route, status, startedAt }: Exchange): object {
  return {
    requestId: id,
    method: head.method,
    route,
    status,
    ms: Math.round((performance.now() - startedAt) * 10) / 10,
  };
}
