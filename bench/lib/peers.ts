import { built } from './build.ts';
import type { Postgres } from './engines.ts';
import { newFolder } from './folders.ts';
import { freePort, startServer } from './server-process.ts';
import { commentPost, credentialHeaders, rawPost, type Target, type TargetName } from './target.ts';
import { mintToken } from './tokens.ts';

/** Starts the bare server; a GET responds with this many bytes. */
export async function startBareUws(bytes = 2): Promise<Target> {
  const port = await freePort();
  return {
    name: 'bare uWS',
    server: await startServer(port, [built('bare-uws'), '--port', String(port), '--bytes', String(bytes)]),
    authorization: 'Bearer none',
    greets: false,
    socketHeaders: () => '',
    eventRequest: (_threadId, event) => rawPost(port, '/publish', 'Bearer none', event),
  };
}

/** Starts the server that a team would write, with an empty database of SQLite. */
export function startFastify(): Promise<Target> {
  return startPeer('Fastify + SQLite', ['--data', newFolder('fastify')]);
}

/** Starts the same on PostgreSQL, with an empty database; on request it also notifies the other users of a thread. */
export async function startFastifyOnPostgres(postgres: Postgres, withNotifications = false): Promise<Target> {
  const name = withNotifications ? 'Fastify + PostgreSQL, notifications' : 'Fastify + PostgreSQL';
  const database = postgres.createDatabase(withNotifications ? 'fastify_notifications' : 'fastify');
  const peer = await startPeer(name, ['--database', database, ...(withNotifications ? ['--notifications'] : [])]);
  return { ...peer, engines: [postgres] };
}

async function startPeer(name: TargetName, storage: readonly string[]): Promise<Target> {
  const port = await freePort();
  const secretKey = 'sk_bench_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG';
  const publishableKey = 'pk_bench_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG';
  const jwtSecret = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFG';
  const options = ['--port', String(port), ...storage, '--secretKey', secretKey];
  const server = await startServer(port, [
    built('fastify'),
    ...options,
    '--publishableKey',
    publishableKey,
    '--jwtSecret',
    jwtSecret,
  ]);
  const authorization = `Bearer ${secretKey}`;
  return {
    name,
    server,
    authorization,
    greets: true,
    socketHeaders: (userId) => credentialHeaders(publishableKey, mintToken(jwtSecret, 'bench', userId)),
    eventRequest: (threadId) => commentPost(port, threadId, authorization),
  };
}
