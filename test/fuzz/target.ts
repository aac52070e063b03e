import { rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { collab, type Cluster, initFolder, startCluster } from '../helpers/cluster.ts';
import { type SlowTurn, turnProbe } from '../helpers/turn-probe.ts';
import type { Credentials, FuzzRequest } from './requests.ts';

/** What came back for a request: an answer, or what became of the connection. */
export type Answer =
  | { readonly status: number; readonly body: string; readonly type: string }
  | { readonly status: 0; readonly problem: string };

/** A server under test, in processes of its own, with probes in its web workers. */
export interface Target {
  readonly cluster: Cluster;
  readonly credentials: Credentials;
  send(fuzz: FuzzRequest): Promise<Answer>;
  /** All slow turns so far. */
  slowTurns(): SlowTurn[];
  /** Bytes in use by the web workers once garbage is collected. */
  settledBytes(): Promise<number>;
  stop(): Promise<void>;
}

/** An answer that takes longer counts as hung. */
const HUNG_MS = 20_000;
const CONFIG = {
  rateLimit: { exempt: ['127.0.0.0/8'] },
  ws: { messagesPerSecond: 100_000, messageBurst: 100_000, maxConnectionsPerUser: 100 },
};
const ADMIN = { email: 'fuzz@example.com', password: 'correct horse battery staple' };

/** Starts a server with one environment and a credential of each kind. */
export async function startTarget(): Promise<Target> {
  const probe = turnProbe();
  const folder = await initFolder(CONFIG);
  const { dir } = folder;
  await run('admin', 'create', ADMIN.email, '--password', ADMIN.password, '--dir', dir);
  const cluster = await startCluster({ workers: 2, folder, env: probe.env });
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  return {
    cluster,
    credentials: await credentialsOf(cluster),
    send: (fuzz) => send(cluster.url, agent, fuzz),
    slowTurns: () => probe.slowTurns(),
    settledBytes: () => probe.settledBytes(2),
    stop: async () => {
      agent.destroy();
      await cluster.stop();
      probe.remove();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function credentialsOf({ url, dir, keys }: Cluster): Promise<Credentials> {
  const { slug } = keys.environment;
  const key = async (...args: string[]): Promise<string> => {
    const made = await run('key', 'create', '--env', slug, '--kind', 'secret', ...args, '--dir', dir);
    return (made as { secretKey: string }).secretKey;
  };
  const token = async (userId: string, claims: object = {}): Promise<string> => {
    const headers = { Authorization: `Bearer ${keys.secretKey}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}/api/v1/users/${userId}/tokens`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ ttl: 86_400, ...claims }),
    });
    return ((await answer.json()) as { token: string }).token;
  };
  const user = async (userId: string, claims?: object): Promise<Record<string, string>> => ({
    'X-Service-Key': keys.publishableKey,
    'X-Service-Token': await token(userId, claims),
  });
  const bearer = (value: string): Record<string, string> => ({ Authorization: `Bearer ${value}` });
  const login = await fetch(`${url}/api/v1/admin/auth/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(ADMIN),
  });
  return {
    none: {},
    garbage: bearer('sk_default_nonsense'),
    secret: bearer(keys.secretKey),
    confined: bearer(await key('--rooms', 'room-1*')),
    readOnly: bearer(await key('--scope', 'read')),
    admin: bearer(((await login.json()) as { token: string }).token),
    member: await user('ann'),
    moderator: await user('bob', { role: 'moderator' }),
    viewer: await user('cid', { role: 'viewer' }),
    guest: await user('dee', { rooms: ['room-1*'] }),
  };
}

async function run(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await collab(...args, '--json');
  if (code !== 0) throw new Error(`collab ${args.join(' ')} failed (${code}): ${stderr}`);
  return JSON.parse(stdout);
}

function send(url: string, agent: Agent, { method, path, headers, body }: FuzzRequest): Promise<Answer> {
  return new Promise((resolve) => {
    const failed = (error: Error): void => resolve({ status: 0, problem: error.message });
    const length = body === null ? {} : { 'Content-Length': body.byteLength };
    const asked = request(new URL(url), { method, path, headers: { ...headers, ...length }, agent }, (response) => {
      const type = String(response.headers['content-type'] ?? '');
      const chunks: Buffer[] = [];
      const finish = (): void => {
        clearTimeout(patience);
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString(), type });
      };
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        // A stream of events has no end.
        if (!type.startsWith('text/event-stream')) return;
        finish();
        asked.destroy();
      });
      response.on('error', failed);
      response.on('end', finish);
    });
    const patience = setTimeout(() => asked.destroy(new Error(`no answer within ${HUNG_MS} ms`)), HUNG_MS);
    asked.on('error', failed);
    asked.end(body ?? undefined);
  });
}
