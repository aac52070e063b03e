import type { CoreRequest } from '../../net/core.ts';
import type { Traces } from '../../observability/traces.ts';
import type { Exchange } from './exchange.ts';

/** The headers of W3C Trace Context of one request. */
interface Parent {
  readonly traceparent: string;
  readonly tracestate: string;
}

const NO_PARENT: Parent = { traceparent: '', tracestate: '' };

/** Records the requests of one process as spans, below the span that the client names. */
export class RequestTracer {
  readonly #traces: Traces;
  readonly #templates: ReadonlyMap<string, string>;
  readonly #parents = new Map<Exchange, Parent>();

  /** @param templates name of a route -> its path, which names the span; other routes are named as they are */
  constructor(traces: Traces, templates: ReadonlyMap<string, string>) {
    this.#traces = traces;
    this.#templates = templates;
  }

  /** Reads the headers of a request. Must be called in the callback that delivered it. */
  started(exchange: Exchange, request: CoreRequest): void {
    const parents: string[] = [];
    const states: string[] = [];
    request.forEach((name, value) => {
      if (name === 'traceparent') parents.push(value);
      else if (name === 'tracestate') states.push(value);
    });
    // More than one is not valid, so no parent is named.
    if (parents.length === 1) this.#parents.set(exchange, { traceparent: parents.join(), tracestate: states.join() });
  }

  /** Records a finished exchange: it was answered, or its client is gone. */
  finished(exchange: Exchange): void {
    const { head, route, status, id, startedAt } = exchange;
    const parent = this.#parents.get(exchange) ?? NO_PARENT;
    this.#parents.delete(exchange);
    this.#traces.record({
      method: head.method,
      route: this.#templates.get(route) ?? route,
      status,
      requestId: id,
      startedAt,
      ...parent,
    });
  }
}
