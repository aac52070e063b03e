import type { Counter, Metrics } from '../../observability/metrics.ts';
import { eventTypes } from '../../model/event.ts';

/**
 * Close codes that get a label of their own: those of docs/realtime.md, of browsers and of the HTTP core. A client may
 * send any code.
 */
const LABELLED_CODES = new Set([
  1000, 1001, 1002, 1005, 1006, 1007, 1009, 1011, 1012, 1013, 4400, 4401, 4403, 4408, 4429, 4500,
]);
/** Length of the text that precedes the type in every frame of the server. */
const PREFIX_CHARS = '{"type":"'.length;

/** Counts the sockets of one process and the frames on them. */
export class SocketMeter {
  readonly #metrics: Metrics;
  readonly #sent = new Map<string, Counter>();
  readonly #received = new Map<string, Counter>();

  /** @param connectionCounts returns the current number of connections of each environment, by its slug */
  constructor(metrics: Metrics, connectionCounts: () => Iterable<readonly [slug: string, count: number]>) {
    this.#metrics = metrics;
    metrics.gauge('ws_connections', function* () {
      for (const [environment, count] of connectionCounts()) yield [{ environment }, count];
    });
    for (const type of eventTypes)
      this.#sent.set(type, metrics.counter('ws_messages_total', { direction: 'out', type }));
  }

  /** Counts a frame that was sent to `times` sockets. */
  sent(frame: string, times = 1): void {
    const type = frame.slice(PREFIX_CHARS, frame.indexOf('"', PREFIX_CHARS));
    const counter = this.#sent.get(type) ?? this.#addCounter(this.#sent, 'out', type);
    counter.value += times;
  }

  /** Counts a received message. Types that are not handled (`known` is false) share the label `unknown`. */
  received(type: string, known: boolean): void {
    const label = known ? type : 'unknown';
    const counter = this.#received.get(label) ?? this.#addCounter(this.#received, 'in', label);
    counter.value += 1;
  }

  /** Counts a socket that has closed. */
  closed(code: number): void {
    this.#metrics.counter('ws_closed_total', { code: LABELLED_CODES.has(code) ? String(code) : 'other' }).value += 1;
  }

  /** Counts a client that reconnected with a position. */
  resumed(recovered: boolean): void {
    this.#metrics.counter('ws_resume_total', { recovered: String(recovered) }).value += 1;
  }

  /** Counts a socket or message that was refused by a rate limit. */
  limited(policy: string): void {
    this.#metrics.counter('rate_limited_total', { policy }).value += 1;
  }

  #addCounter(counters: Map<string, Counter>, direction: 'in' | 'out', type: string): Counter {
    const counter = this.#metrics.counter('ws_messages_total', { direction, type });
    counters.set(type, counter);
    return counter;
  }
}
