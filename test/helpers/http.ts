import { tmpdir } from 'node:os';
import type { Test } from 'tap';
import { MemoryStore } from '../doubles/memory-store.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import type { Context } from '../../src/domain/context.ts';
import { createEnvironment } from '../../src/domain/environments/environments.ts';
import { createKey } from '../../src/domain/access/keys.ts';
import type { KeyCreate } from '../../src/model/environments/key.ts';
import { addSigningKey } from '../../src/domain/access/signing-keys.ts';
import type { ServerStatus } from '../../src/http/health.ts';
import type { HttpServer } from '../../src/net/core.ts';
import { socketSchemas } from '../../src/realtime/socket-schemas.ts';
import { attachHttp, type Http, type HttpDeps } from '../../src/http/server.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { ManualClock } from '../doubles/manual-clock.ts';
import { CHEAP_LN } from '../doubles/cheap-passwords.ts';
import { createLogger, type Logger } from '../../src/observability/log.ts';
import type { Environment } from '../../src/model/environments/environment.ts';
import type { Blobs } from '../../src/ports/blobs.ts';
import type { Shared } from '../../src/ports/shared.ts';
import type { Store } from '../../src/ports/store.ts';
import { newServer } from './core.ts';
import { askOnce } from './http-client.ts';
import { newShared } from './new-shared.ts';
import { RawConnection } from './raw-http.ts';

/** The time at which the clock of a test starts. */
export const TEST_START = Date.parse('2026-01-02T03:04:05.678Z');

export interface TestServerOptions {
  readonly clock?: Clock;
  readonly store?: Store;
  readonly shared?: Shared;
  readonly blobs?: Blobs;
  /** An existing environment of the store to serve; otherwise one named `default` is created. */
  readonly environment?: Environment;
  /**
   * Configuration values as text, by the path of the option. Loopback is not rate limited unless `rateLimit.exempt` is
   * set.
   */
  readonly flags?: Readonly<Record<string, string>>;
  readonly demo?: HttpDeps['demo'];
  readonly streamHeartbeatMs?: number;
  /** Hashes passwords as the product does, each in half a second. */
  readonly realPasswords?: true;
  readonly log?: Logger;
  /** The server to attach everything to, instead of `newServer()`. */
  readonly server?: HttpServer;
}

export interface TestRequest {
  /** Sent as JSON, except text and bytes, which are sent unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The secret key; null for none. Defaults to the key of the server. */
  readonly key?: string | null;
}

/** A response, read completely. */
export interface TestResponse<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The text parsed as JSON; undefined if it is not JSON. */
  readonly json: T;
}

/** A server with one environment on its own port. It ends with the test. */
export interface TestServer {
  readonly port: number;
  readonly url: string;
  readonly ctx: Context;
  readonly config: Config;
  readonly status: ServerStatus;
  readonly http: Http;
  readonly environment: Environment;
  /** A secret key of the environment with all rights. */
  readonly key: string;
  readonly newKey: (input: Omit<KeyCreate, 'kind'>) => Promise<string>;
  /** Requests a path below `/api/v1`; or, if it begins with `//`, the path without its first slash. */
  readonly request: <T = unknown>(method: string, path: string, options?: TestRequest) => Promise<TestResponse<T>>;
  /** Opens a connection for raw requests. */
  readonly connect: () => Promise<RawConnection>;
}

export async function startTestServer(t: Test, options: TestServerOptions = {}): Promise<TestServer> {
  const { clock = new ManualClock(TEST_START), store = new MemoryStore(), shared = newShared(clock) } = options;
  const passwordLn = options.realPasswords === true ? undefined : CHEAP_LN;
  const ctx: Context = { store, shared, clock, blobs: options.blobs, passwordLn };
  const dir = tmpdir();
  const flags = { 'rateLimit.exempt': '127.0.0.0/8', dataDir: dir, ...options.flags };
  const config = loadConfig({ dir, env: {}, flags });
  const status: ServerStatus = { draining: false };
  const log = options.log ?? createLogger({ level: 'silent', name: 'test' });
  const environment = options.environment ?? (await newEnvironment(ctx));
  const newKey = async (input: Omit<KeyCreate, 'kind'>): Promise<string> =>
    (await createKey(ctx, environment, { kind: 'secret', ...input })).value;
  const key = await newKey({ name: 'test' });

  const server = options.server ?? newServer();
  const { demo, streamHeartbeatMs } = options;
  const http = attachHttp(server.app, { ctx, config, log, status, demo, streamHeartbeatMs, socketSchemas });
  const port = await server.listen('127.0.0.1', 0);
  const url = `http://127.0.0.1:${port}`;
  const connections: RawConnection[] = [];
  t.teardown(async () => {
    for (const connection of connections) connection.destroy();
    http.endStreams();
    server.close();
    if (options.store === undefined) await store.close();
  });
  const connect = async (): Promise<RawConnection> => {
    const connection = await RawConnection.open(port);
    connections.push(connection);
    return connection;
  };
  return {
    port,
    url,
    ctx,
    config,
    status,
    http,
    environment,
    key,
    newKey,
    connect,
    request: (method, path, asked = {}) =>
      ask(method, path.startsWith('//') ? url + path.slice(1) : `${url}/api/v1${path}`, key, asked),
  };
}

async function newEnvironment(ctx: Context): Promise<Environment> {
  const environment = await createEnvironment(ctx, { slug: 'default' });
  await addSigningKey(ctx, environment, { kind: 'secret' });
  return environment;
}

/** Requests a URL, with `ownKey` unless the request has another key. */
export async function ask<T>(
  method: string,
  url: string,
  ownKey: string,
  { body, headers = {}, key = ownKey }: TestRequest,
): Promise<TestResponse<T>> {
  const answer = await askOnce(method, url, {
    headers: {
      ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    body: typeof body === 'string' || body instanceof Uint8Array || body === undefined ? body : JSON.stringify(body),
  });
  return Object.assign(answer, { json: parsed(answer.text) as T });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
