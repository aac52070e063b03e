import type { Metrics } from '../lib/metrics.ts';
import type { Channel } from './channel.ts';

const EVERY_MS = 1_000;

/** Tells the primary once a second what this process has counted. Returns the way to stop, which tells it the last. */
export function reportMetrics(channel: Channel, metrics: Metrics): () => void {
  const report = (): void => channel.send({ type: 'metrics', data: metrics.takeReport() });
  const timer = setInterval(report, EVERY_MS).unref();
  return () => {
    clearInterval(timer);
    report();
  };
}
