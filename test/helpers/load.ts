import { request, Agent } from 'node:http';
import type { Cluster } from './cluster.ts';

/** The results of a stream of requests. */
export interface Tally {
  /** Requests that were answered as expected. */
  good: number;
  /** Everything else, in words. */
  readonly bad: string[];
}

/** Requests that go on until they are stopped. */
export interface Load {
  readonly tally: Tally;
  stop(): Promise<Tally>;
}

export interface LoadOptions {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body of the `n`th request. */
  readonly body?: (n: number) => string;
  readonly expect: number;
  /** Whether connections are kept and used again, or each request makes one. */
  readonly keepAlive: boolean;
  /** Milliseconds between the end of a request and the next; asked for after each. */
  readonly pauseMs?: () => number;
}

/** For how long after a change of the web workers requests come often: from its start until the old one drains. */
const AFTER_CHANGE_MS = 4_000;
const SLOW_MS = 150;

/**
 * Milliseconds between requests beside a rolling restart: few while web workers start, stop listening and close their
 * sockets, and many while an old one only waits for connections that are idle, for more than ten seconds.
 */
export function pauseBeside(server: Pick<Cluster, 'pids'>, fewMs: number): () => number {
  let [workers, changedAt, lookedAt] = ['', 0, -Infinity];
  return () => {
    const now = performance.now();
    if (now - lookedAt > 100) {
      const found = server.pids('web').join();
      if (found !== workers) [workers, changedAt] = [found, now];
      lookedAt = now;
    }
    return now - changedAt < AFTER_CHANGE_MS ? fewMs : SLOW_MS;
  };
}

/** Sends one request after the other until stopped, each as soon as the one before was answered. */
export function startLoad(options: LoadOptions): Load {
  const tally: Tally = { good: 0, bad: [] };
  const agent = new Agent({ keepAlive: options.keepAlive, maxSockets: 1 });
  let going = true;
  const run = async (): Promise<void> => {
    for (let n = 0; going; n++) {
      try {
        const status = await once(options, agent, n);
        if (status === options.expect) tally.good++;
        else tally.bad.push(`status ${status}`);
      } catch (error) {
        tally.bad.push(error instanceof Error ? error.message : String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, options.pauseMs?.() ?? 0));
    }
    agent.destroy();
  };
  const running = run();
  return {
    tally,
    stop: async () => {
      going = false;
      await running;
      return tally;
    },
  };
}

function once({ url, method = 'GET', headers = {}, body }: LoadOptions, agent: Agent, n: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent }, (answer) => {
      answer.resume();
      answer.once('end', () => resolve(answer.statusCode ?? 0));
      answer.once('error', reject);
    });
    sent.once('error', reject);
    sent.end(body?.(n));
  });
}
