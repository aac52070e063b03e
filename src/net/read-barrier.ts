import { performance } from 'node:perf_hooks';
import type { CoreKind } from './core.ts';

/**
 * How long the rest of an unread body may follow its response, in milliseconds: at most 1 MiB is skipped
 * (`http/core/exchange.ts`), the native core cuts off what is slower than 16 kB/s, and its timers turn every 4 s.
 */
const SKIPPED_BODY_MS = 120_000;

/**
 * Calls `notify` before input of clients is handled that may be a consequence of something that happened after the last
 * call.
 *
 * Requests that the event loop received together cause one call. libuv asks the system for the sockets that have bytes
 * (`epoll_wait`), then handles one after the other. The native core closes a connection that sends a request before the
 * response to the last one, so the bytes that made a socket ready began a request before `epoll_wait` returned, and so
 * before the call. For what else may follow in the same read `notify` is called again: the next request after a
 * response or after an unread body, and messages of WebSockets. See docs/decisions/0015-fresh-reads.md.
 */
export class InputNotifier {
  readonly #notify: () => void;
  readonly #batchOf: () => number;
  /** The batch of the last call; NaN if the next input causes a call in any case. */
  #notifiedBatch = Number.NaN;
  #allUntil = 0;

  /**
   * @param notify called before the input is handled
   * @param batchOf returns the number of the current batch of ready sockets, NaN if it is not known
   */
  constructor(notify: () => void, batchOf: () => number) {
    this.#notify = notify;
    this.#batchOf = batchOf;
  }

  /** Must be called before a request is handled. */
  onRequest(): void {
    const batch = this.#batchOf();
    if (batch === this.#notifiedBatch) return;
    this.#notifiedBatch = this.#allUntil > 0 && performance.now() < this.#allUntil ? Number.NaN : batch;
    this.#notify();
  }

  /** Must be called before any other input is handled. */
  onMessage(): void {
    this.#notifiedBatch = Number.NaN;
    this.#notify();
  }

  /**
   * Must be called when a request has its whole response.
   *
   * @param hasUnreadBody whether more of its body may come, before the next request on the connection
   */
  onResponse(hasUnreadBody: boolean): void {
    this.#notifiedBatch = Number.NaN;
    if (hasUnreadBody) this.#allUntil = performance.now() + SKIPPED_BODY_MS;
  }
}

/**
 * Returns a function for `InputNotifier`. The batch is known on Linux, with the native core, from Node 20.18 on: libuv
 * counts the events of a batch when it has handled all of them (`uv_metrics_info`).
 */
export function pollBatches(core: CoreKind): () => number {
  const { nodeTiming } = performance;
  // Since Node 20.18 and 22.8; not in 20.12, which is supported.
  const isKnown = core === 'uws' && process.platform === 'linux' && 'uvMetricsInfo' in nodeTiming;
  return isKnown ? () => nodeTiming.uvMetricsInfo.events : () => Number.NaN;
}
