import { performance } from 'node:perf_hooks';
import type { CoreKind } from './core.ts';

/**
 * How long the rest of an unread body may follow its response, in milliseconds: at most 1 MiB is skipped
 * (`http/core/exchange.ts`), the native core cuts off what is slower than 16 kB/s, and its timers turn every 4 s.
 */
const SKIPPED_BODY_MS = 120_000;

/**
 * Places a read barrier before input of clients is handled: reads after it show every commit that was made before it,
 * since the input may be a consequence of one of them.
 *
 * One barrier is enough for requests that the event loop received together. libuv asks the system for the sockets that
 * have bytes (`epoll_wait`), then handles one after the other. The native core closes a connection that sends a request
 * before the response to the last one, so the bytes that made a socket ready began a request before `epoll_wait`
 * returned, and so before the barrier. What else may follow in the same read has another one: the next request after a
 * response or after an unread body, and messages of WebSockets. See docs/decisions/0015-fresh-reads.md.
 */
export class ReadBarrier {
  readonly #place: () => void;
  readonly #batchOf: () => number;
  /** The batch of the last barrier; NaN if the next input needs another one in any case. */
  #lastBatch = Number.NaN;
  #allUntil = 0;

  /**
   * @param place makes later reads show all commits so far; called before the input is handled
   * @param batchOf returns the number of the current batch of ready sockets, NaN if it is not known
   */
  constructor(place: () => void, batchOf: () => number) {
    this.#place = place;
    this.#batchOf = batchOf;
  }

  /** Must be called before a request is handled. */
  onRequest(): void {
    const batch = this.#batchOf();
    if (batch === this.#lastBatch) return;
    this.#lastBatch = this.#allUntil > 0 && performance.now() < this.#allUntil ? Number.NaN : batch;
    this.#place();
  }

  /** Must be called before any other input is handled. */
  onMessage(): void {
    this.#lastBatch = Number.NaN;
    this.#place();
  }

  /**
   * Must be called when a request has its whole response.
   *
   * @param hasUnreadBody whether more of its body may come, before the next request on the connection
   */
  onResponse(hasUnreadBody: boolean): void {
    this.#lastBatch = Number.NaN;
    if (hasUnreadBody) this.#allUntil = performance.now() + SKIPPED_BODY_MS;
  }
}

/**
 * Returns `batchOf` of a `ReadBarrier`. The batch is known on Linux, with the native core, from Node 20.18 on: libuv
 * counts the events of a batch when it has handled all of them (`uv_metrics_info`).
 */
export function pollBatches(core: CoreKind): () => number {
  const { nodeTiming } = performance;
  // Since Node 20.18 and 22.8; not in 20.12, which is supported.
  const isKnown = core === 'uws' && process.platform === 'linux' && 'uvMetricsInfo' in nodeTiming;
  return isKnown ? () => nodeTiming.uvMetricsInfo.events : () => Number.NaN;
}
