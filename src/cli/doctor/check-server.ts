import { isLoopback } from '../../lib/addresses/loopback.ts';
import { accessDenialOf } from '../../lib/files/access-denial.ts';
import { firstLine } from '../../lib/thrown.ts';
import type { Config } from '../../config/schema.ts';
import { findFreePort } from '../../cluster/free-port.ts';
import { isOldCore, nativeCore } from '../../net/uws/native-core.ts';
import { type Check, fail, ok, type CheckedFolder, warn } from './check.ts';
import { type Readiness, readinessOf } from '../shared/readiness.ts';
import { findRunningServer, type RunningServer } from '../shared/running-server.ts';
import { shellWord } from '../../lib/shell-word.ts';

/** The HTTP core of the server that is running on the data folder; null if there is none, or it is not known. */
export function runningCore({ dataDir }: Config): string | null {
  try {
    return findRunningServer(dataDir)?.endpoint?.core ?? null;
  } catch (error) {
    // The check of the server reports it.
    if (accessDenialOf(error) === null) throw error;
    return null;
  }
}

/** Checks the lock of the folder, the address, and what a public server needs. */
export async function checkServer(folder: CheckedFolder): Promise<Check[]> {
  try {
    return await checkServerOf(folder);
  } catch (error) {
    const denial = accessDenialOf(error);
    if (denial === null) throw error;
    return [fail('lock', denial.message, denial.remedy)];
  }
}

async function checkServerOf({ dir, config }: CheckedFolder): Promise<Check[]> {
  const server = findRunningServer(config.dataDir);
  if (server === null)
    return [ok('lock', 'free: no server is running on this folder'), await checkPort(config), checkExposure(config)];
  const address =
    server.endpoint?.address ?? `the server is starting; \`collab status --dir ${shellWord(dir)}\` shows its state`;
  const readiness = server.endpoint === null ? [] : await checkReadiness(server.endpoint);
  return [
    ok('lock', `taken by the running server, process ${server.pid}`),
    ok('address', address),
    ...readiness,
    checkExposure(config),
  ];
}

async function checkReadiness(server: RunningServer): Promise<Check[]> {
  const readiness = await readinessOf(server);
  const background = fail(
    'background',
    'the background worker cannot start: notifications, webhooks and checkpoints of the store wait',
    'The lines of the log with "ended" give the reason. It is tried again by itself.',
  );
  return readiness.backgroundFailing ? [readyCheck(readiness), background] : [readyCheck(readiness)];
}

function readyCheck({ ready, reason, missingPlugins }: Readiness): Check {
  if (ready && missingPlugins > 0) {
    const plugins = missingPlugins === 1 ? 'one plugin' : `${missingPlugins} plugins`;
    return warn(
      'ready',
      `the server accepts reads and writes, but runs without ${plugins} of the configuration`,
      'The lines of its log with "could not be loaded" give the reason. Correct it, then restart the server.',
    );
  }
  if (ready) return ok('ready', 'the server accepts reads and writes');
  return fail(
    'ready',
    `the server is not ready (${reason})`,
    'The lines of its log that begin with "not ready" give the reason.',
  );
}

async function checkPort({ host, port }: Config): Promise<Check> {
  try {
    await findFreePort(host, port, 0);
    return ok('address', `${host}, port ${port}: free`);
  } catch (error) {
    return fail('address', firstLine(error), 'Change host or port in config.json.');
  }
}

function checkExposure(config: Config): Check {
  const { host, demo, trustProxy } = config;
  if (isLoopback(host)) return ok('exposure', `${host} is reachable from this machine only`);
  if (demo)
    return fail(
      'exposure',
      `the demo page lets everyone who can reach ${host} write comments`,
      'Set demo to false, or host to 127.0.0.1.',
    );
  if (trustProxy.length === 0) {
    const core = runningCore(config) ?? (config.core === 'node' ? 'node' : nativeCore().file);
    const more = isOldCore(core) ? ' The HTTP core for Node 20 must not be exposed without a proxy.' : '';
    return warn(
      'exposure',
      `the server listens on ${host} and trusts no proxy`,
      `Put a TLS proxy in front and list its network in trustProxy.${more}`,
    );
  }
  return ok('exposure', `${host}, behind the proxies in trustProxy`);
}
