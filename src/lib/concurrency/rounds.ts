import { setTimeout as delay } from 'node:timers/promises';

/** Runs rounds of work one after the other for as long as they are asked for. */
export class Rounds {
  readonly #round: () => Promise<boolean>;
  readonly #collectMs: number;
  #running: Promise<void> | null = null;
  /** Whether a round has to follow the one that runs. */
  #isAsked = false;
  #isStopped = false;

  /**
   * @param round does what is to be done, and returns whether there is more, so that another one follows at once. Must
   *   not reject
   * @param collectMs how many milliseconds a round waits that was asked for during another one, so that it does more
   */
  constructor(round: () => Promise<boolean>, collectMs: number) {
    this.#round = round;
    this.#collectMs = collectMs;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Begins a round at once, or once the one that runs has ended. */
  ask(): void {
    this.#isAsked = true;
    this.#running ??= this.#run().finally(() => (this.#running = null));
  }

  /** Begins no more rounds. Resolves once the one that runs has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#isAsked && !this.#isStopped) {
      this.#isAsked = false;
      const hasMore = await this.#round();
      if (hasMore) this.#isAsked = true;
      else if (this.#isAsked) await delay(this.#collectMs);
    }
  }
}
