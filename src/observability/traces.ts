import type * as Api from '@opentelemetry/api';
import type * as Core from '@opentelemetry/core';
import type * as Exporter from '@opentelemetry/exporter-trace-otlp-http';
import type * as Resources from '@opentelemetry/resources';
import type * as Sdk from '@opentelemetry/sdk-trace-base';
import { messageOf } from '../lib/thrown.ts';
import { importModule } from '../lib/process/import-module.ts';
import { version } from '../model/version.ts';
import type { Logger } from './log.ts';

/** A request that is over. */
export interface TracedRequest {
  /** As sent. */
  readonly method: string;
  /** The template of its path; '' if no route matched. */
  readonly route: string;
  /** The status of the response; 0 if the client was gone before it. */
  readonly status: number;
  readonly requestId: string;
  /** `performance.now()` when it came in. */
  readonly startedAt: number;
  /** The headers of W3C Trace Context as sent; '' for none. */
  readonly traceparent: string;
  readonly tracestate: string;
}

/** Sends a span for each request, in batches. */
export interface Traces {
  /** Adds the span of a request, which ends now. Never throws and never waits. Spans beyond the queue are dropped. */
  record(request: TracedRequest): void;
  /** Sends what is queued. Never rejects. */
  close(): Promise<void>;
}

/** Options of the traces of a process. */
export interface TracesOptions {
  /** Environment variables. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  /** The name of the process, as in the log. */
  readonly worker: string;
}

/** Methods that the conventions of OpenTelemetry know; others are sent as `_OTHER`. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']);
/** At most one warning in this time, in milliseconds: every batch fails while the collector is unreachable. */
const WARN_EVERY_MS = 60_000;

/**
 * Loads the SDK of OpenTelemetry if its environment variables ask for traces (docs/operations.md, "Traces"), and
 * nothing if they do not. The SDK reads the same variables: endpoint, headers, sampler, batches, resource.
 *
 * @returns null if no traces are to be sent
 */
export async function startTraces({ variables, log, worker }: TracesOptions): Promise<Traces | null> {
  if (!isWanted(variables, log)) return null;
  const [
    { defaultTextMapGetter, diag, DiagLogLevel, ROOT_CONTEXT, SpanKind, SpanStatusCode },
    { W3CTraceContextPropagator },
    resources,
    { BasicTracerProvider, BatchSpanProcessor },
    { OTLPTraceExporter },
  ] = await Promise.all([
    importModule('@opentelemetry/api') as Promise<typeof Api>,
    importModule('@opentelemetry/core') as Promise<typeof Core>,
    importModule('@opentelemetry/resources') as Promise<typeof Resources>,
    importModule('@opentelemetry/sdk-trace-base') as Promise<typeof Sdk>,
    importModule('@opentelemetry/exporter-trace-otlp-http') as Promise<typeof Exporter>,
  ]);
  const warn = rarely((message) => log.warn({ reason: message }, 'traces could not be sent'));
  diag.setLogger(
    { error: warn, warn, info: () => {}, debug: () => {}, verbose: () => {} },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );

  const own = resources.resourceFromAttributes({
    'service.name': 'collab',
    'service.version': version,
    'service.instance.id': `${process.pid}`,
    'collab.worker': worker,
  });
  const resource = resources
    .defaultResource()
    .merge(own)
    .merge(resources.detectResources({ detectors: [resources.envDetector] }));
  const provider = new BasicTracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  const tracer = provider.getTracer('collab', version);
  const propagator = new W3CTraceContextPropagator();
  return {
    record: ({ method, route, status, requestId, startedAt, traceparent, tracestate }) => {
      const parent =
        traceparent === ''
          ? ROOT_CONTEXT
          : propagator.extract(ROOT_CONTEXT, { traceparent, tracestate }, defaultTextMapGetter);
      const known = METHODS.has(method) ? method : '_OTHER';
      const now = Date.now();
      const failure = status === 0 ? 'aborted' : status >= 500 ? String(status) : undefined;
      const span = tracer.startSpan(
        `${known === '_OTHER' ? 'HTTP' : known} ${route}`.trimEnd(),
        {
          kind: SpanKind.SERVER,
          startTime: now - (performance.now() - startedAt),
          attributes: {
            'http.request.method': known,
            'http.route': route === '' ? undefined : route,
            'http.response.status_code': status === 0 ? undefined : status,
            'error.type': failure,
            'collab.request_id': requestId,
          },
        },
        parent,
      );
      if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(now);
    },
    close: () => provider.shutdown().catch(warn),
  };
}

/** Whether the variables ask for traces. Logs why they cannot be sent if they ask for something else. */
function isWanted(variables: TracesOptions['variables'], log: Logger): boolean {
  const read = (name: string): string => (variables[name] ?? '').trim().toLowerCase();
  if (read('OTEL_SDK_DISABLED') === 'true') return false;
  const endpoint = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') || read('OTEL_EXPORTER_OTLP_ENDPOINT');
  const exporters = read('OTEL_TRACES_EXPORTER') || (endpoint === '' ? 'none' : 'otlp');
  if (exporters === 'none') return false;
  if (exporters !== 'otlp') {
    log.warn(`no traces are sent: OTEL_TRACES_EXPORTER must be otlp or none, not "${exporters}"`);
    return false;
  }
  const protocol = read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') || read('OTEL_EXPORTER_OTLP_PROTOCOL');
  if (protocol === 'grpc') {
    log.warn(
      'no traces are sent: OTEL_EXPORTER_OTLP_PROTOCOL must be http/json or http/protobuf, not "grpc"; use ' +
        'the HTTP endpoint of the collector, often port 4318',
    );
    return false;
  }
  return true;
}

/** Calls `report` with a message, at most once in `WARN_EVERY_MS`. */
function rarely(report: (message: string) => void): (message: unknown) => void {
  let reportedAt = -Infinity;
  return (message) => {
    const now = performance.now();
    if (now - reportedAt < WARN_EVERY_MS) return;
    reportedAt = now;
    report(messageOf(message));
  };
}
