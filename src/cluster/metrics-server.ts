import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../config/schema.ts';
import { explainListen, metricsOptions } from './free-port.ts';
import { Metrics } from '../observability/metrics.ts';
import { METRICS_TYPE, MetricsTotals } from '../observability/metrics-totals.ts';
import { meterProcess } from '../observability/process-metrics.ts';

/** The name of this process in its metrics. */
const PRIMARY = 'primary';

/** The listener of /metrics, and the totals it serves. */
export interface MetricsServer {
  readonly totals: MetricsTotals;
  readonly port: number;
  close(): void;
}

/**
 * Listens for Prometheus, separately from the API. Serves `GET /metrics` and nothing else.
 *
 * @throws {StartError} if it cannot listen
 */
export async function openMetrics({ host, port, token }: Config['metrics']): Promise<MetricsServer> {
  const totals = new MetricsTotals();
  const own = new Metrics();
  meterProcess(own, PRIMARY);
  const render = (): string => {
    totals.add(PRIMARY, own.takeReport());
    return totals.render();
  };
  const server = createServer((request, response) => respond(render, token, request, response));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(explainListen(error.code ?? String(error), host, port, metricsOptions)),
    );
    server.listen({ host, port, exclusive: true }, resolve);
  });
  return {
    totals,
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function respond(
  render: () => string,
  token: string,
  { method, url, headers }: IncomingMessage,
  response: ServerResponse,
): void {
  const send = (status: number, type: string, body: string, more: Record<string, string> = {}): void => {
    response.writeHead(status, {
      'Content-Type': type,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...more,
    });
    response.end(body);
  };
  const refuse = (status: number, error: string, more?: Record<string, string>): void =>
    send(status, 'application/json; charset=utf-8', JSON.stringify({ error }), more);
  if (url?.split('?')[0] !== '/metrics' || (method !== 'GET' && method !== 'HEAD'))
    refuse(404, 'Only GET /metrics is served here');
  else if (token !== '' && !isEqual(headers.authorization ?? '', `Bearer ${token}`))
    refuse(401, 'Send the value of metrics.token as Authorization: Bearer …', { 'WWW-Authenticate': 'Bearer' });
  else send(200, METRICS_TYPE, render());
}

/** Compares in constant time. */
function isEqual(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
