import type { Connection } from './connection.ts';
import { storeError } from './faults.ts';
import type { Link } from './link.ts';
import { SCRIPT, SCRIPT_SHA } from './script.ts';

/** A call of the script. */
export interface Call {
  /** Its name and arguments. */
  readonly args: readonly string[];
  /** The key of the call, without the tag; undefined if it has none. */
  readonly key: string | undefined;
  readonly resolve: (answer: readonly string[]) => void;
  readonly reject: (error: Error) => void;
}

/** How many calls one run of the script makes at most: the server does nothing else meanwhile. */
const MAX_CALLS = 200;

/**
 * Sends calls to the script: those of one event loop iteration, and those made while the ones before are answered, as
 * one command. At most one is on its way, so calls take effect in their order, whatever happens to the connection, and
 * also when the server has forgotten the script.
 */
export class Calls {
  readonly #link: Link;
  readonly #tag: string;
  readonly #time: () => string;
  readonly #onForeign: (keys: readonly string[]) => void;
  #waiting: Call[] = [];
  #running: Promise<void> | undefined;

  /**
   * @param time the time in µs to use in place of that of the server, or ''
   * @param onForeign called with keys that had values of another program and were removed
   */
  constructor(link: Link, tag: string, time: () => string, onForeign: (keys: readonly string[]) => void) {
    this.#link = link;
    this.#tag = tag;
    this.#time = time;
    this.#onForeign = onForeign;
  }

  add(call: Call): void {
    this.#waiting.push(call);
    this.#running ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.#run());
  }

  /** Resolves once the calls that were made before have settled. */
  async settled(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const calls = this.#waiting.splice(0, MAX_CALLS);
      try {
        const foreign = settle(calls, await evaluate(await this.#link.connection(), this.#command(calls)));
        if (foreign.length > 0) this.#onForeign(foreign);
      } catch (error) {
        const refusal = storeError(error);
        for (const { reject } of calls) reject(refusal);
      }
    }
    this.#running = undefined;
  }

  /** What follows the script in the command. */
  #command(calls: readonly Call[]): string[] {
    const keys = [`${this.#tag}:t`, `${this.#tag}:l`];
    const args = [this.#time()];
    for (const call of calls) {
      if (call.key !== undefined) keys.push(`${this.#tag}:${call.key}`);
      args.push(...call.args);
    }
    return [String(keys.length), ...keys, ...args];
  }
}

async function evaluate(connection: Connection, command: readonly string[]): Promise<unknown> {
  try {
    return await connection.send(['EVALSHA', SCRIPT_SHA, ...command]);
  } catch (error) {
    // Also after a restart, a failover or SCRIPT FLUSH.
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    return connection.send(['EVAL', SCRIPT, ...command]);
  }
}

/** Returns the names of keys that had values of another program. */
function settle(calls: readonly Call[], answers: unknown): readonly string[] {
  if (!Array.isArray(answers) || answers.length !== calls.length + 1)
    throw new Error('the answer of the script is not one');
  for (const [i, { resolve, reject }] of calls.entries()) {
    const answer = answers[i] as readonly string[];
    if (answer[0] === '!') reject(storeError(new Error(answer[1])));
    else resolve(answer);
  }
  return answers.at(-1) as readonly string[];
}
