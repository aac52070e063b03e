import { type Collab, installCollab, newConfiguredFolder, startCollab } from './collab.ts';
import { type Engine, type Postgres, startPostgres, startRedis } from './engines.ts';
import type { Plan } from './plan.ts';
import type { Target, TargetName } from './target.ts';

/** The engines of a case, on the core of the load. */
export interface Engines {
  readonly postgres: Postgres;
  readonly redis: Engine;
}

/** Several nodes that share their engines and credentials. */
export interface Nodes {
  readonly name: TargetName;
  readonly all: readonly Collab[];
  /** The URL of their database. */
  readonly database: string;
}

/** Runs the work with a PostgreSQL and a Redis, and ends them in any case. */
export async function withEngines<T>(work: (engines: Engines) => Promise<T>): Promise<T> {
  const started: Engine[] = [];
  try {
    const postgres = await startPostgres();
    started.push(postgres);
    const redis = await startRedis();
    started.push(redis);
    return await work({ postgres, redis });
  } finally {
    for (const engine of started) await engine.stop();
  }
}

/** How many nodes share which engines. */
export interface NodesOptions {
  readonly bin: string;
  readonly name: TargetName;
  readonly count?: number;
  /** Whether Redis has windows, presence and messages between nodes, rather than PostgreSQL. */
  readonly withRedis?: boolean;
}

/** Starts nodes on an empty database, each with one web worker, in a folder of its own. */
export async function startNodes(
  { postgres, redis }: Engines,
  { bin, name, count = 1, withRedis = false }: NodesOptions,
): Promise<Nodes> {
  const id = name.replaceAll(/\W+/g, '_');
  const database = postgres.createDatabase(id);
  const options = {
    store: { url: database },
    ...(withRedis && { shared: { url: `redis://127.0.0.1:${redis.port}/0?prefix=${id}` } }),
  };
  const first = installCollab(bin, options);
  const others = Array.from({ length: count - 1 }, () => ({ ...first, dir: newConfiguredFolder(options) }));
  const all: Collab[] = [];
  for (const installation of [first, ...others]) {
    const node = await startCollab(installation, 'auto', name);
    all.push({ ...node, engines: withRedis ? [postgres, redis] : [postgres] });
  }
  return { name, all, database };
}

/** The nodes as one server: requests and sockets go to the first one. */
export function asTarget({ all }: Nodes): Target {
  const [first] = all;
  if (first === undefined) throw new Error('there are no nodes');
  const stop = async (): Promise<void> => {
    for (const { server } of all) await server.stop();
  };
  return { ...first, server: { ...first.server, pids: () => all.flatMap(({ server }) => server.pids()), stop } };
}

/** One node of this build and one of the earlier build, each on a database of its own. */
export async function startNodeOfBuilds(engines: Engines, { bin, before }: Plan): Promise<Nodes[]> {
  const builds = [await startNodes(engines, { bin, name: 'collab' })];
  if (before !== null) builds.push(await startNodes(engines, { bin: before, name: 'collab before' }));
  return builds;
}
