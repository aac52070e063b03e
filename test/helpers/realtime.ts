import type { Test } from 'tap';
import { ipcBus } from '../../src/adapters/ipc/bus.ts';
import { channelPair } from '../../src/cluster/channel.ts';
import { Relay } from '../../src/cluster/relay.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { createKey } from '../../src/domain/access/keys.ts';
import { addSigningKey } from '../../src/domain/access/signing-keys.ts';
import { signUserToken, type TokenRequest } from '../../src/domain/access/tokens.ts';
import type { Actor } from '../../src/domain/access/actor.ts';
import type { Context } from '../../src/domain/context.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import type { Environment } from '../../src/model/environments/environment.ts';
import type { HttpServer } from '../../src/net/core.ts';
import { createLogger } from '../../src/observability/log.ts';
import type { Shared } from '../../src/ports/shared.ts';
import type { Store } from '../../src/ports/store.ts';
import { attachRealtime, type Realtime } from '../../src/realtime/server.ts';
import { HeldBus } from '../doubles/held-bus.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { MemoryStore } from '../doubles/memory-store.ts';
import { newServer } from './core.ts';
import { newShared } from './new-shared.ts';
import { type SocketOptions, TestSocket } from './socket.ts';

/** Options of the configuration by path, as texts. */
export type Flags = Readonly<Record<string, string>>;

/** What the workers of one cluster share, in one process: store, shared memory, bus and a clock that tests advance. */
export interface World {
  readonly ctx: Context;
  readonly clock: ManualClock;
  readonly environment: Environment;
  /** Connects the buses of the workers. */
  readonly relay: Relay;
  /** The publishable key. */
  readonly key: string;
  /** A backend with all rights. */
  readonly backend: Actor;
  token(request: Partial<TokenRequest> & { readonly userId: string }): Promise<string>;
}

/** A worker that serves sockets on its own port. */
export interface Worker {
  readonly realtime: Realtime;
  readonly bus: HeldBus;
  readonly url: string;
  readonly config: Config;
  /** Opens a socket with the credentials of a user in its headers, and resolves after its welcome. */
  join(token: string, search?: string): Promise<TestSocket>;
  /** Opens a socket, which is closed at the end of the test. */
  open(options?: SocketOptions, search?: string): TestSocket;
}

/** Where the clock stands at the beginning, in milliseconds since the epoch. */
export const START = Date.parse('2026-01-02T03:04:05.678Z');

/** Ports that a test brings. The time of a shared memory of its own must be that of the clock. */
export interface Ports {
  readonly store?: Store;
  readonly shared?: Shared;
  readonly clock?: ManualClock;
}

/** Creates a world with one environment, its publishable key and a signing key. */
export async function createWorld(t: Test, ports: Ports = {}): Promise<World> {
  const { clock = new ManualClock(START), store = new MemoryStore(), shared = newShared(clock) } = ports;
  const ctx: Context = { store, shared, clock };
  const environment = await createEnvironment(ctx, { slug: 'default' });
  const { value: key } = await createKey(ctx, environment, { kind: 'publishable' });
  await addSigningKey(ctx, environment, { kind: 'secret' });
  t.teardown(() => store.close());
  return {
    ctx,
    clock,
    environment,
    relay: new Relay(),
    key,
    backend: { kind: 'backend', environment, keyId: 'key_test', scope: 'full', rooms: null, via: 'rest' },
    token: async (request) => (await signUserToken(ctx, environment, { ttlSeconds: 3600, ...request })).token,
  };
}

/** Starts a worker of a world. It stops at the end of the test. */
export async function startWorker(
  t: Test,
  world: World,
  flags: Flags = {},
  owner = 'w1',
  server: HttpServer = newServer(),
): Promise<Worker> {
  const config = loadConfig({ dir: '/nowhere', env: {}, flags: { 'rateLimit.exempt': '127.0.0.1', ...flags } });
  const log = createLogger({ level: 'silent', name: owner });
  const [primary, channel] = channelPair();
  world.relay.add(primary);
  const bus = new HeldBus(ipcBus(channel));
  const realtime = attachRealtime(server.app, { ctx: world.ctx, config, log, bus, owner });
  const url = `ws://127.0.0.1:${await server.listen('127.0.0.1', 0)}/api/v1/ws`;
  const sockets = new Set<TestSocket>();
  t.teardown(async () => {
    await Promise.all([...sockets].map((socket) => socket.terminate()));
    await realtime.close(0, 0);
    server.close();
  });
  const open = (options: SocketOptions = {}, search = ''): TestSocket => {
    const socket = new TestSocket(url + search, options);
    sockets.add(socket);
    return socket;
  };
  return {
    realtime,
    bus,
    url,
    config,
    open,
    join: async (token, search) => {
      const socket = open({ headers: { 'X-Service-Key': world.key, 'X-Service-Token': token } }, search);
      await socket.frame('welcome');
      return socket;
    },
  };
}
