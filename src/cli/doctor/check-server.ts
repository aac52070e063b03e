import { isIP } from 'node:net';
import type { Config } from '../../config/schema.ts';
import { findFreePort } from '../../cluster/free-port.ts';
import { nativeCore } from '../../net/listen.ts';
import { type Check, fail, ok, reasonOf, type Subject, warn } from './check.ts';
import { readinessOf } from '../shared/readiness.ts';
import { findRunning, type Running } from '../shared/running.ts';
import { shellWord } from '../terminal/output.ts';

/** Looks at who holds the folder, at the address, and at what a public server needs. */
export async function checkServer({ dir, config }: Subject): Promise<Check[]> {
  const server = findRunning(config.dataDir);
  if (server === null) return [ok('lock', 'free: no server runs here'), await checkPort(config), checkExposure(config)];
  const where = server.reached?.address ?? `starting; \`collab status --dir ${shellWord(dir)}\` says more`;
  const readiness = server.reached === null ? [] : [await checkReadiness(server.reached)];
  return [ok('lock', `held by the running server, process ${server.pid}`), ok('address', where), ...readiness, checkExposure(config)];
}

async function checkReadiness(server: Running): Promise<Check> {
  const { ready, reason } = await readinessOf(server);
  if (ready) return ok('ready', 'the server takes reads and writes');
  return fail('ready', `the server is not ready (${reason})`, 'Its log says why, in the lines that begin with "not ready".');
}

async function checkPort({ host, port }: Config): Promise<Check> {
  try {
    await findFreePort(host, port, 0);
    return ok('address', `${host}, port ${port}: free`);
  } catch (error) {
    return fail('address', reasonOf(error), 'Set host and port in config.json.');
  }
}

function checkExposure({ host, demo, trustProxy }: Config): Check {
  if (isLoopback(host)) return ok('exposure', `${host} is reached from this machine only`);
  if (demo) return fail('exposure', `the demo page is open to everyone who reaches ${host}`, 'Set demo to false, or host to 127.0.0.1.');
  if (trustProxy.length === 0) {
    const core = nativeCore().old ? ' The HTTP core for Node 20 must not be exposed without one.' : '';
    return warn('exposure', `it listens on ${host} and trusts no proxy`, `Put a proxy with TLS in front and name its network in trustProxy.${core}`);
  }
  return ok('exposure', `${host}, behind the proxies in trustProxy`);
}

function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith('127.');
  return host === '::1' || host === 'localhost';
}
