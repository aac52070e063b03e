import { join } from 'node:path';
import type { Test } from 'tap';
import { openWorkerContext } from '../../src/app.ts';
import { channelPair } from '../../src/cluster/channel.ts';
import { shutDown } from '../../src/cluster/shutdown.ts';
import { Relay } from '../../src/cluster/relay.ts';
import { runWebWorker } from '../../src/workers/web-worker.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Context } from '../../src/domain/context.ts';
import { createEnvironment, environmentById, updateEnvironment } from '../../src/domain/environments/environments.ts';
import { createKey } from '../../src/domain/access/keys.ts';
import type { KeyCreate } from '../../src/model/environments/key.ts';
import { addSigningKey } from '../../src/domain/access/signing-keys.ts';
import { signUserToken, type TokenRequest } from '../../src/domain/access/tokens.ts';
import { CHEAP_LN } from '../doubles/cheap-passwords.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import type { Filters } from '../../src/ports/filters.ts';
import { createLogger } from '../../src/observability/log.ts';
import type { Environment, EnvironmentPatch } from '../../src/model/environments/environment.ts';
import { engineFlags } from './engines/engine-flags.ts';
import { ask, type TestResponse, type TestRequest, TEST_START } from './http.ts';
import { testCore } from './core.ts';
import { maybeLate } from './new-shared.ts';
import { type SocketOptions, TestSocket } from './socket.ts';
import { tempFolder } from './temp-folder.ts';

export interface ServiceOptions {
  /** Web workers, each with the store open by itself; one when absent. */
  readonly workers?: number;
  /**
   * Texts of configuration by the path of the option. Loopback is not rate limited unless `rateLimit.exempt` says
   * otherwise.
   */
  readonly flags?: Readonly<Record<string, string>>;
  /** Stands in for the filters of plugins. */
  readonly filters?: Filters;
}

/**
 * The whole service in this process: real workers, HTTP and WebSocket, on one store, and a clock that the test turns.
 */
export interface Service {
  readonly clock: ManualClock;
  readonly ctx: Context;
  readonly dataDir: string;
  /** Addresses of the workers, without a path. */
  readonly urls: readonly string[];
  /** Makes an environment with keys of each kind. */
  tenant(slug: string, settings?: EnvironmentPatch['settings']): Promise<Tenant>;
}

/** As `TestRequest`, and which worker is asked, the first when absent. */
export type TenantRequest = TestRequest & { readonly worker?: number };

/** An environment with its credentials. */
export interface Tenant {
  readonly service: Service;
  readonly environment: Environment;
  /** A secret key with every right. */
  readonly secretKey: string;
  readonly publishableKey: string;
  readonly newKey: (input: Omit<KeyCreate, 'kind'>) => Promise<{ readonly id: string; readonly value: string }>;
  readonly token: (request: Partial<TokenRequest> & { readonly userId: string }) => Promise<string>;
  /** The headers of a user. */
  readonly userHeaders: (
    request: Partial<TokenRequest> & { readonly userId: string },
  ) => Promise<Record<string, string>>;
  /**
   * Asks with the secret key, unless told otherwise, for a path below `/api/v1`, or after a second slash for a whole
   * one.
   */
  readonly request: <T = unknown>(method: string, path: string, options?: TenantRequest) => Promise<TestResponse<T>>;
  /** Opens a socket as a user and waits for its welcome. */
  readonly join: (
    request: Partial<TokenRequest> & { readonly userId: string },
    options?: { worker?: number; search?: string },
  ) => Promise<TestSocket>;
  /** Opens a socket that says of itself who it is. It ends with the test. */
  readonly open: (options?: SocketOptions, search?: string) => TestSocket;
}

/** Starts the service on ports of its own; it ends with the test. */
export async function startService(
  t: Test,
  { workers = 1, flags = {}, filters }: ServiceOptions = {},
): Promise<Service> {
  const dir = tempFolder(t);
  const given = {
    ...(await engineFlags()),
    core: testCore,
    'rateLimit.exempt': '127.0.0.0/8',
    'shutdown.closeSpreadSeconds': '0',
    dataDir: join(dir, 'data'),
    'storage.minFreeMb': '0',
    ...flags,
  };
  const config = loadConfig({ dir, env: {}, flags: given });
  const log = createLogger({ level: 'silent', name: 'test' });
  const clock = new ManualClock(TEST_START);
  const relay = new Relay();
  const running: { ctx: Context; url: string }[] = [];
  for (let number = 1; number <= workers; number++) {
    const [primary, channel] = channelPair();
    relay.add(primary);
    const opened = await openWorkerContext(
      config,
      { workerId: `web-${number}`, channel, subscribes: true, log },
      clock,
    );
    const shared = maybeLate(opened.ctx.shared);
    const ctx: Context = { ...opened.ctx, shared, filters, passwordLn: CHEAP_LN };
    const worker = await runWebWorker({ config, ctx, bus: opened.bus, log, owner: `web-${number}`, port: 0 });
    const close = async (): Promise<void> => {
      // After the calls before it.
      await shared.maintain();
      await opened.close();
    };
    t.teardown(() => shutDown([...worker.drain('stop'), { name: 'close', withinMs: 5_000, run: close }], log));
    running.push({ ctx, url: `http://127.0.0.1:${worker.ready.port}` });
  }
  const [first] = running;
  if (first === undefined) throw new Error('a service has at least one worker');
  const service: Service = {
    clock,
    ctx: first.ctx,
    dataDir: config.dataDir,
    urls: running.map(({ url }) => url),
    tenant: (slug, settings) => newTenant(t, service, slug, settings),
  };
  return service;
}

async function newTenant(
  t: Test,
  service: Service,
  slug: string,
  settings: EnvironmentPatch['settings'],
): Promise<Tenant> {
  const { ctx, urls } = service;
  const made = await createEnvironment(ctx, { slug });
  if (settings !== undefined) await updateEnvironment(ctx, made.id, { settings });
  const environment = await environmentById(ctx, made.id);
  await addSigningKey(ctx, environment, { kind: 'secret' });
  const { value: secretKey } = await createKey(ctx, environment, { kind: 'secret' });
  const { value: publishableKey } = await createKey(ctx, environment, { kind: 'publishable' });
  const urlOf = (worker = 0): string => urls[worker] ?? '';
  const token: Tenant['token'] = async (request) =>
    (await signUserToken(ctx, environment, { ttlSeconds: 3600, ...request })).token;
  const userHeaders: Tenant['userHeaders'] = async (request) => ({
    'X-Service-Key': publishableKey,
    'X-Service-Token': await token(request),
  });
  const openAt = (worker: number | undefined, options: SocketOptions, search: string): TestSocket => {
    const socket = new TestSocket(`${urlOf(worker).replace('http', 'ws')}/api/v1/ws${search}`, options);
    t.teardown(() => socket.terminate());
    return socket;
  };
  return {
    service,
    environment,
    secretKey,
    publishableKey,
    newKey: async (input) => {
      const { key, value } = await createKey(ctx, environment, { kind: 'secret', ...input });
      return { id: key.id, value };
    },
    token,
    userHeaders,
    request: (method, path, { worker, ...asked } = {}) =>
      ask(method, urlOf(worker) + (path.startsWith('//') ? path.slice(1) : `/api/v1${path}`), secretKey, asked),
    join: async (request, { worker, search = '' } = {}) => {
      const socket = openAt(worker, { headers: await userHeaders(request) }, search);
      await socket.frame('welcome');
      return socket;
    },
    open: (options = {}, search = '') => openAt(undefined, options, search),
  };
}
