import type { Counter, Metrics } from '../../observability/metrics.ts';
import { eventTypes } from '../../model/event.ts';
import type { Feed } from '../feed/hub.ts';

/** Close codes with a label of their own: those of docs/realtime.md and what browsers and the core say. A client may send any. */
const CODES = new Set([1000, 1001, 1002, 1005, 1006, 1009, 1011, 1012, 1013, 4400, 4401, 4403, 4408, 4429, 4500]);
/** What every frame of ours begins with. */
const HEAD = '{"type":"'.length;

/** Counts the sockets of one process and what goes over them. */
export class SocketMeter {
  readonly #metrics: Metrics;
  readonly #sent = new Map<string, Counter>();
  readonly #received = new Map<string, Counter>();

  /** @param feeds those that have connections at the moment */
  constructor(metrics: Metrics, feeds: () => Iterable<Feed>) {
    this.#metrics = metrics;
    metrics.gauge('ws_connections', function* () {
      for (const feed of feeds()) yield [{ environment: feed.environment.slug }, feed.members.size];
    });
    for (const type of eventTypes) this.#sent.set(type, metrics.counter('ws_messages_total', { direction: 'out', type }));
  }

  /** A frame went out to `times` sockets. */
  sent(frame: string, times = 1): void {
    const type = frame.slice(HEAD, frame.indexOf('"', HEAD));
    const counter = this.#sent.get(type) ?? this.#make(this.#sent, 'out', type);
    counter.value += times;
  }

  /** A message came in. `known`: its type is one that is handled; any other counts as unknown. */
  received(type: string, known: boolean): void {
    const label = known ? type : 'unknown';
    const counter = this.#received.get(label) ?? this.#make(this.#received, 'in', label);
    counter.value += 1;
  }

  closed(code: number): void {
    this.#metrics.counter('ws_closed_total', { code: CODES.has(code) ? String(code) : 'other' }).value += 1;
  }

  /** A client came back with a position. */
  resumed(recovered: boolean): void {
    this.#metrics.counter('ws_resume_total', { recovered: String(recovered) }).value += 1;
  }

  /** A socket or message was refused for coming too often. */
  limited(policy: string): void {
    this.#metrics.counter('rate_limited_total', { policy }).value += 1;
  }

  #make(counters: Map<string, Counter>, direction: 'in' | 'out', type: string): Counter {
    const counter = this.#metrics.counter('ws_messages_total', { direction, type });
    counters.set(type, counter);
    return counter;
  }
}
