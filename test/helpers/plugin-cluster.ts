import type { Test } from 'tap';
import { type Cluster, type Folder, startCluster } from './cluster.ts';
import { collab } from './command.ts';
import { askOnce } from './http-client.ts';

/** The answer of the API. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** A cluster with plugins, whose backend is not limited. It is stopped with the test. */
export interface PluginCluster extends Cluster {
  /** Calls the API with the secret key; `path` is below `/api/v1`. */
  call(method: string, path: string, body?: object): Promise<ApiAnswer>;
  /** Creates a thread and returns its id. */
  thread(body: string, roomId?: string): Promise<string>;
  /** Runs a command with `--json` in the environment `default`, and returns what it printed. @throws if it fails */
  run<T>(...args: string[]): Promise<T>;
}

/**
 * Starts a server with one web worker and the users ann and bob: with these entries of `plugins`, or in a folder that
 * was made before.
 */
export async function startPluginCluster(
  t: Pick<Test, 'teardown'>,
  plugins: readonly object[] | Folder,
): Promise<PluginCluster> {
  const made = 'dir' in plugins ? { folder: plugins } : { config: { rateLimit: { perMinute: 1_000_000 }, plugins } };
  const cluster = await startCluster({ workers: 1, ...made });
  t.teardown(() => cluster.kill());
  const { url, keys, dir } = cluster;
  const call = async (method: string, path: string, body?: object): Promise<ApiAnswer> => {
    const headers = { authorization: `Bearer ${keys.secretKey}`, 'content-type': 'application/json' };
    const { status, text } = await askOnce(method, `${url}/api/v1${path}`, {
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status, body: JSON.parse(text) as ApiAnswer['body'] };
  };
  await call('PUT', '/users/ann', { name: 'Ann', email: 'ann@example.com' });
  await call('PUT', '/users/bob', { name: 'Bob', email: 'bob@example.com' });
  return {
    ...cluster,
    call,
    thread: async (body, roomId = 'home') => {
      const created = await call('POST', `/rooms/${encodeURIComponent(roomId)}/threads`, { userId: 'ann', body });
      return (created.body['thread'] as { id: string }).id;
    },
    run: async (...args) => {
      const { code, stdout, stderr } = await collab([...args, '--env', 'default', '--dir', dir, '--json']);
      if (code !== 0) throw new Error(`collab ${args.join(' ')} failed: ${stderr}`);
      return JSON.parse(stdout) as never;
    },
  };
}
