import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createLogger } from '../../src/observability/log.ts';
import { startTraces } from '../../src/observability/traces.ts';
import { type Cluster, startCluster } from '../helpers/cluster.ts';
import { type Receiver, startReceiver } from '../helpers/receiver.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string };
}

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly status: { readonly code?: number };
}

/** The part of a request of OTLP/HTTP in JSON that the tests read. */
interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

const SERVER = 2;
const ERROR = 2;
const NANOSECONDS = 1e6;
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

const exportsTo = (receiver: Receiver): Export[] =>
  receiver.received.map(({ body }) => JSON.parse(body.toString()) as Export);
const spansOf = (receiver: Receiver): Span[] =>
  exportsTo(receiver)
    .flatMap(({ resourceSpans }) => resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans);
const valuesOf = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]));

async function ask({ url, keys }: Cluster, path: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(`${url}/api/v1${path}`, {
    headers: { Authorization: `Bearer ${keys.secretKey}`, ...headers },
  });
  await response.text();
  return response.status;
}

/** Variables of a server that records, as its processes end, how many modules of OpenTelemetry each has loaded. */
function recordLoaded(t: Test): { env: Record<string, string>; loaded: () => number } {
  const file = join(tempFolder(t), 'loaded');
  const script = `
    import { Module } from 'node:module';
    import { appendFileSync } from 'node:fs';
    process.on('exit', () => appendFileSync(${JSON.stringify(file)}, Object.keys(Module._cache).filter((path) => path.includes('@opentelemetry')).length + '\\n'));`;
  return {
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` },
    loaded: () => Math.max(...readFileSync(file, 'utf8').trim().split('\n').map(Number)),
  };
}

t.test('every request is sent as a span of the trace that its client names', async (t) => {
  const receiver = await startReceiver(t);
  const recorded = recordLoaded(t);
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=docs',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    ...recorded.env,
  };
  const cluster = await startCluster({ workers: 1, env });
  t.teardown(() => cluster.kill());
  const startedAt = Date.now();
  await ask(cluster, '/rooms/demo/threads', {
    traceparent: `00-${TRACE}-${PARENT}-01`,
    tracestate: 'vendor=1',
    'X-Request-Id': 'req-1',
  });
  await ask(cluster, '/rooms/demo', { traceparent: `00-${TRACE}-${PARENT}-00`, 'X-Request-Id': 'not-sampled' });
  await ask(cluster, '/threads/th_none', { 'X-Request-Id': 'req-2' });
  await ask(cluster, '/nothing', { traceparent: 'nonsense', 'X-Request-Id': 'req-3' });
  await cluster.stop();
  t.ok(recorded.loaded() > 0, 'what is loaded is noticed');

  const spans = spansOf(receiver);
  const views = spans.map(({ name, kind, attributes }) => ({ name, kind, ...valuesOf(attributes) }));
  t.strictSame(
    views,
    [
      {
        name: 'GET /api/v1/rooms/:roomId/threads',
        kind: SERVER,
        'http.request.method': 'GET',
        'http.route': '/api/v1/rooms/:roomId/threads',
        'http.response.status_code': 200,
        'collab.request_id': 'req-1',
      },
      {
        name: 'GET /api/v1/threads/:threadId',
        kind: SERVER,
        'http.request.method': 'GET',
        'http.route': '/api/v1/threads/:threadId',
        'http.response.status_code': 404,
        'collab.request_id': 'req-2',
      },
      {
        name: 'GET',
        kind: SERVER,
        'http.request.method': 'GET',
        'http.response.status_code': 404,
        'collab.request_id': 'req-3',
      },
    ],
    'a trace that is not sampled is not sent',
  );
  const [first, second, third] = spans;
  t.match(first, { traceId: TRACE, parentSpanId: PARENT, traceState: 'vendor=1' });
  for (const span of [second, third]) {
    t.notOk(span?.parentSpanId, 'a trace of its own');
    t.match(span?.traceId, /^(?!0{32})[0-9a-f]{32}$/);
    t.not(span?.traceId, TRACE);
  }
  for (const { startTimeUnixNano, endTimeUnixNano } of spans) {
    const [start, end] = [Number(startTimeUnixNano) / NANOSECONDS, Number(endTimeUnixNano) / NANOSECONDS];
    t.ok(start >= startedAt - 1_000 && start <= end && end <= Date.now() + 1, `${startedAt} ${start} ${end}`);
  }
  t.match(receiver.received[0], {
    method: 'POST',
    path: '/v1/traces',
    headers: { 'content-type': 'application/json', 'x-tenant': 'docs' },
  });
  const resources = exportsTo(receiver)
    .flatMap(({ resourceSpans }) => resourceSpans)
    .map(({ resource }) => valuesOf(resource.attributes));
  t.match(resources, [
    {
      'service.name': 'collab',
      'service.version': /^\d/,
      'collab.worker': 'web-1',
      'deployment.environment.name': 'test',
      'telemetry.sdk.language': 'nodejs',
    },
  ]);
});

t.test('an error of the server and a client that goes away are marked as errors', async (t) => {
  const receiver = await startReceiver(t);
  const log = createLogger({ level: 'silent', name: 'test' });
  const before = process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
  process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] = `${receiver.url}/own/path`;
  t.teardown(() =>
    before === undefined
      ? delete process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']
      : (process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] = before),
  );
  const traces = await startTraces({
    variables: { ...process.env, OTEL_SERVICE_NAME: 'comments' },
    log,
    worker: 'web-1',
  });
  const request = {
    method: 'GET',
    route: '/a',
    status: 200,
    requestId: 'r',
    startedAt: performance.now(),
    traceparent: '',
    tracestate: '',
  };
  for (const each of [request, { ...request, status: 503 }, { ...request, status: 0 }, { ...request, method: 'BREW' }])
    traces?.record(each);
  await traces?.close();
  const views = spansOf(receiver).map(({ name, status, attributes }) => ({
    name,
    code: status.code ?? 0,
    ...valuesOf(attributes),
  }));
  t.match(views, [
    { name: 'GET /a', code: 0 },
    { code: ERROR, 'error.type': '503', 'http.response.status_code': 503 },
    { code: ERROR, 'error.type': 'aborted' },
    { name: 'HTTP /a', 'http.request.method': '_OTHER' },
  ]);
  t.equal(receiver.received[0]?.path, '/own/path');
});

t.test('nothing is loaded unless traces are to be sent', async (t) => {
  const receiver = await startReceiver(t);
  const disabled = { OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  for (const env of [undefined, disabled]) {
    const recorded = recordLoaded(t);
    const cluster = await startCluster({ workers: 1, env: { ...env, ...recorded.env } });
    t.equal(await ask(cluster, '/rooms'), 200);
    await cluster.stop();
    t.equal(recorded.loaded(), 0);
  }
  t.equal(receiver.received.length, 0);
});

t.test('a collector that is away is reported in the log, and requests are answered', async (t) => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    OTEL_BSP_SCHEDULE_DELAY: '100',
  };
  const cluster = await startCluster({ workers: 1, env });
  t.teardown(() => cluster.kill());
  t.equal(await ask(cluster, '/rooms'), 200);
  t.match(await cluster.logged(({ msg }) => msg === 'traces could not be sent'), {
    level: 'warn',
    worker: 'web-1',
    reason: String,
  });
  t.equal(await ask(cluster, '/rooms'), 200);
});

t.test('variables that ask for nothing, or for what is not supported, send nothing; the log says why', async (t) => {
  const cases: [variables: Record<string, string>, warning: RegExp | null][] = [
    [{}, null],
    [{ OTEL_SERVICE_NAME: 'comments' }, null],
    [{ OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }, null],
    [{ OTEL_TRACES_EXPORTER: 'otlp', OTEL_SDK_DISABLED: 'TRUE' }, null],
    [{ OTEL_TRACES_EXPORTER: 'console' }, /OTEL_TRACES_EXPORTER must be otlp or none, not \\"console\\"/],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      /OTEL_EXPORTER_OTLP_PROTOCOL must be http\/json or http\/protobuf, not \\"grpc\\"/,
    ],
  ];
  for (const [variables, warning] of cases) {
    const lines: string[] = [];
    const log = createLogger({ level: 'info', name: 'test', destination: { write: (line) => void lines.push(line) } });
    t.equal(await startTraces({ variables, log, worker: 'web-1' }), null);
    if (warning === null) t.strictSame(lines, []);
    else t.match(lines, [warning]);
  }
});
