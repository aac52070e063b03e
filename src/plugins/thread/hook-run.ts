import { PausableTimeout } from '../../lib/concurrency/pausable-timeout.ts';
import type { HookReference } from './messages.ts';

/** What a run of a hook begins with. */
export interface HookCall {
  readonly hook: HookReference;
  readonly argument: unknown;
  readonly context: object;
  readonly timeoutMs: number;
}

/** A run of a hook whose caller waits for `result`. */
export class HookRun {
  readonly id: number;
  readonly call: HookCall;
  /** Settled once, by `succeed` or `fail`. */
  readonly result: Promise<unknown>;
  readonly #deadline: PausableTimeout;
  #resolve: (value: unknown) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #isEnded = false;

  /** @param onLate called once if the run has not ended `timeoutMs` after this, without the time of its pauses */
  constructor(id: number, call: HookCall, onLate: (run: HookRun) => void) {
    this.id = id;
    this.call = call;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#deadline = new PausableTimeout(call.timeoutMs, () => onLate(this));
  }

  /** Whether a request waits for the run. */
  get hasClient(): boolean {
    const { kind } = this.call.hook;
    return kind === 'filter' || kind === 'route';
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  succeed(value: unknown): void {
    this.#end();
    this.#resolve(value);
  }

  fail(error: Error): void {
    this.#end();
    this.#reject(error);
  }

  /**
   * Stops the deadline while the run waits for the store, which is no fault of the plugin; not if a request waits for
   * it. Returns what ends that.
   */
  pause(): () => void {
    if (this.hasClient) return () => {};
    this.#deadline.pause();
    return () => this.#deadline.resume();
  }

  #end(): void {
    this.#isEnded = true;
    this.#deadline.clear();
  }
}
