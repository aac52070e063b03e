import { Agent, request } from 'node:http';
import type { Cluster } from './cluster.ts';

/** An answer of a worker. */
export interface WorkerAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** A kept connection to one worker of a cluster. */
export interface Connection {
  /** Names the worker: ids of requests begin with it. */
  readonly worker: string;
  readonly send: (
    method: string,
    path: string,
    options?: { body?: object; headers?: Readonly<Record<string, string>> },
  ) => Promise<WorkerAnswer>;
  readonly close: () => void;
}

/**
 * Opens `each` connections to each of two workers: the kernel says which gets one. Sends a request on each that no
 * limit counts. All of them end by `close`.
 */
export async function connectToBoth(cluster: Cluster, each: number): Promise<Connection[]> {
  const found = new Map<string, Connection[]>();
  while (found.size < 2 || [...found.values()].some(({ length }) => length < each)) {
    const connection = await connect(cluster);
    const known = found.get(connection.worker) ?? [];
    if (known.length < each) found.set(connection.worker, [...known, connection]);
    else connection.close();
  }
  // One of each in turn, so that neighbours are of different workers.
  const [one = [], two = []] = [...found.values()];
  return one.flatMap((connection, at) => [connection, two[at] ?? connection]);
}

async function connect({ url, keys }: Cluster): Promise<Connection> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send: Connection['send'] = (method, path, { body, headers = {} } = {}) =>
    new Promise((resolve, reject) => {
      const common = { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json' };
      const sent = request(url + path, { method, agent, headers: { ...common, ...headers } }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        answer.once('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text }));
        answer.once('error', reject);
      });
      sent.once('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  const { headers } = await send('GET', '/livez');
  const id = String(headers['x-request-id']);
  return { worker: id.slice(0, id.lastIndexOf('-')), send, close: () => agent.destroy() };
}
