import { messageOf } from '../../lib/thrown.ts';
import { Connection } from './connection.ts';
import { addressOf, type Endpoint, refusal, type Target } from './target.ts';

/**
 * Connects to the server of a target that holds its keys, by asking sentinels or following a cluster to it.
 *
 * @throws what the last server that was tried has said
 */
export async function connect(target: Target): Promise<Connection> {
  let failure: unknown;
  for (const endpoint of target.endpoints) {
    try {
      const master = target.sentinel === undefined ? endpoint : await masterOf(target, endpoint, target.sentinel);
      return await connectTo(target, master);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/**
 * Whether a connection is to another server than the sentinels name, such as an old master that is cut off from them.
 * False if none can be asked, and for a target without sentinels.
 */
export async function isOutdated(target: Target, { endpoint }: Connection): Promise<boolean> {
  const { endpoints, sentinel } = target;
  if (sentinel === undefined) return false;
  for (const address of endpoints) {
    try {
      return addressOf(await masterOf(target, address, sentinel)) !== addressOf(endpoint);
    } catch {
      // Another sentinel may know.
    }
  }
  return false;
}

/** How often a node of a cluster may name another one. */
const MAX_MOVES = 5;

async function connectTo(target: Target, first: Endpoint): Promise<Connection> {
  let endpoint = first;
  for (let moves = 0; ; moves++) {
    const connection = await Connection.open(endpoint, target);
    try {
      await requireUsable(target, connection);
      const next = await movedTo(connection, `${target.tag}:t`);
      if (next === undefined) return connection;
      if (moves === MAX_MOVES) throw new Error('the nodes of the cluster name each other');
      endpoint = next;
      connection.end(new Error('another node is meant'));
    } catch (error) {
      connection.end(error);
      throw error;
    }
  }
}

async function requireUsable(target: Target, connection: Connection): Promise<void> {
  const { server, version, mode, role } = await connection.greeting();
  const at = `${server} at ${addressOf(connection.endpoint)}`;
  if (server === 'redis' && Number(version.split('.', 1).join()) < 7)
    throw refusal(`${at} is version ${version}: Redis 7 or Valkey is needed`);
  if (mode === 'sentinel') throw refusal(`${at} is a sentinel: add ?sentinel= with the name of its master to the URL`);
  if (role !== 'master' && mode !== 'cluster')
    throw refusal(`${at} is a read-only replica: let the URL name the master, or its sentinels with ?sentinel=`);
  if (mode === 'cluster' && target.database !== 0) throw refusal(`${at} is a cluster, which has no database but 0`);
}

/** The node of a cluster that has a key, if it is another one. */
async function movedTo(connection: Connection, key: string): Promise<Endpoint | undefined> {
  try {
    await connection.send(['GET', key]);
    return undefined;
  } catch (error) {
    const [, host, port] = /^MOVED \d+ (.*):(\d+)$/.exec(messageOf(error)) ?? [];
    if (port === undefined) throw error;
    return { host: host === undefined || host === '' ? connection.endpoint.host : host, port: Number(port) };
  }
}

async function masterOf(target: Target, sentinel: Endpoint, name: string): Promise<Endpoint> {
  const { tls, answerMs } = target;
  const login = { username: undefined, password: target.sentinelPassword, database: 0, tls, answerMs };
  const connection = await Connection.open(sentinel, login);
  try {
    const answer = await connection.send(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]);
    if (!Array.isArray(answer))
      throw refusal(`the sentinel at ${addressOf(sentinel)} knows no master ${name}: correct ?sentinel= in the URL`);
    const [host, port] = answer.map(String);
    return { host: host ?? '', port: Number(port) };
  } finally {
    connection.end(new Error('the address is known'));
  }
}
