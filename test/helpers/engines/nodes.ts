import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { type Cluster, type Keys, startCluster } from '../cluster.ts';
import type { InitOutput } from '../cli.ts';
import { collab } from '../command.ts';
import { addCodeCaches } from '../new-folder.ts';

/** The engines that nodes share, as options of config.json. */
export interface Engines {
  readonly store: { readonly url: string };
  readonly shared?: { readonly url: string };
  readonly blobs?: Readonly<Record<string, unknown>>;
}

/** Nodes that share engines, each with a folder of its own. */
export interface Nodes {
  readonly keys: Keys;
  /** The nodes by their number, as they run now. */
  readonly all: Cluster[];
  /** The folder of a node. */
  readonly dirs: readonly string[];
  /** Starts a node again that has ended, on the same port, with another build of the program if it is named. */
  restart(number: number, program?: string): Promise<void>;
}

export interface NodesOptions {
  readonly count?: number;
  /** Further options in the config.json of each. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Environment variables besides those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Makes a folder whose config.json names engines. */
export function nodeFolder(t: Test, engines: Engines, config: Readonly<Record<string, unknown>> = {}): string {
  const dir = mkdtempSync(join(tmpdir(), 'collab-node-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  writeFileSync(
    join(dir, 'config.json'),
    JSON.stringify({
      rateLimit: { exempt: ['127.0.0.1'] },
      shutdown: { drainSeconds: 5, closeSpreadSeconds: 0 },
      storage: { minFreeMb: 0 },
      ...engines,
      ...config,
    }),
  );
  return dir;
}

/** Fills the engines by `collab init`, and starts nodes with one web worker each, which end with the test. */
export async function startNodes(
  t: Test,
  engines: Engines,
  { count = 3, config = {}, env = {} }: NodesOptions = {},
): Promise<Nodes> {
  const dirs = Array.from({ length: count }, () => nodeFolder(t, engines, config));
  const made = await collab(['init', '--dir', dirs[0] ?? '', '--json']);
  if (made.code !== 0) throw new Error(`collab init failed (${made.code}): ${made.stderr}`);
  const keys = JSON.parse(made.stdout) as InitOutput;
  for (const dir of dirs) await addCodeCaches(dir);
  const all: Cluster[] = [];
  t.teardown(() => Promise.all(all.map((node) => node.kill())));
  const start = (dir: string, port = 0, program?: string): Promise<Cluster> =>
    startCluster({ folder: { dir, keys }, workers: 1, port, env, program });
  all.push(...(await Promise.all(dirs.map((dir) => start(dir)))));
  return {
    keys,
    all,
    dirs,
    restart: async (number, program) => {
      const { dir, port } = all[number] ?? { dir: '', port: 0 };
      all[number] = await start(dir, port, program);
    },
  };
}
