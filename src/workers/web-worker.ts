import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../config/schema.ts';
import type { Context } from '../domain/context.ts';
import { writeKeyUses } from '../domain/access/key-uses.ts';
import type { ServerStatus } from '../http/health.ts';
import { checkCore } from '../net/core-check.ts';
import { createServer, type HttpServer, nativeCore } from '../net/listen.ts';
import { attachHttp, type Http } from '../http/server.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Logger } from '../observability/log.ts';
import type { Bus } from '../ports/bus.ts';
import { attachRealtime, type Realtime } from '../realtime/server.ts';
import { StartError } from '../cluster/exit.ts';
import { quietMoment, type Step } from '../cluster/lifecycle.ts';
import { reportFaults } from './store-faults.ts';
import type { DrainReason, ReadyData } from '../cluster/messages.ts';

/** How often a worker looks for changes that nobody announces: those of the command line. */
const POLL_MS = 250;
/** How late the last use of a key may stand in lists. */
const KEY_USES_MS = 5_000;
/** The core ends an HTTP connection that idles for 10 s: until then it may send one more request. */
const IDLE_CONNECTION_MS = 10_500;
/** For the last answers and close frames to get from the kernel to the network before their connections are cut. */
const LAST_BYTES_MS = 50;
/** For requests that came on kept connections after all others were answered. */
const LAST_REQUESTS_MS = 500;
/** The environment of the demo page: the one that a new folder starts with. */
const DEMO_ENVIRONMENT = 'default';

export interface WebWorkerOptions {
  readonly config: Config;
  readonly ctx: Context;
  readonly bus: Bus;
  readonly log: Logger;
  /** Owns this worker's counts in shared memory. */
  readonly workerId: string;
  /** Port to listen on, shared with the other workers; 0 takes one that is not shared. */
  readonly port: number;
  /** Where everything is counted; absent while nobody asks. */
  readonly metrics?: Metrics | undefined;
}

/** A worker that serves HTTP and WebSocket. */
export interface WebWorker {
  /** Where it listens, and on what core. */
  readonly ready: ReadyData;
  /** The steps by which it ends: nothing that was accepted is refused or cut off, as far as the bounds allow. */
  drain(reason: DrainReason): readonly Step[];
}

/** What a worker has to wind up. */
interface Parts {
  readonly config: Config;
  readonly status: ServerStatus;
  readonly server: HttpServer;
  readonly http: Http;
  readonly realtime: Realtime;
  readonly stopRecording: () => Promise<void>;
  readonly disconnectStore: () => void;
}

/**
 * Serves on the configured host and the given port, and carries hints between the store and the bus.
 *
 * @throws {StartError} when the HTTP core does not run here, or corrupts what it sends
 * @throws {Error} when it cannot listen, in words for the operator
 */
export async function runWebWorker({ config, ctx, bus, log, workerId, port, metrics }: WebWorkerOptions): Promise<WebWorker> {
  await requireCore();
  const status: ServerStatus = { draining: false };
  const onInput = ctx.store.expireOnInput();
  const server = createServer(onInput);
  const realtime = attachRealtime(server.app, { ctx, config, log, bus, owner: workerId, metrics });
  const demo = config.demo ? (await import('../demo/demo.ts')).createDemo(ctx, DEMO_ENVIRONMENT) : undefined;
  const http = attachHttp(server.app, { ctx, config, log, status, metrics, demo, onInput });
  reportFaults(ctx.store, log);
  const disconnectStore = connectStore(ctx, bus);
  if (metrics !== undefined) timeCommits(ctx, metrics);
  const stopRecording = recordKeyUses(ctx, log);
  const { file, old } = nativeCore();
  return {
    ready: { port: await server.listen(config.host, port), core: file, oldCore: old },
    drain: (reason) => drainSteps({ config, status, server, http, realtime, stopRecording, disconnectStore }, reason),
  };
}

/** Throws a `StartError` where the server would corrupt what it sends. */
async function requireCore(): Promise<void> {
  const { level, finding, remedy } = await checkCore();
  if (level === 'fail') throw new StartError(`${finding}. ${remedy ?? ''}`);
}

function timeCommits({ store }: Context, metrics: Metrics): void {
  const durations = metrics.histogram('lmdb_txn_duration_seconds');
  store.onFlushed((_position, ms) => durations.observe(ms / 1000));
}

/** Announces each flush to other processes, and polls the store at each announcement and periodically. Returns a function that stops it. */
function connectStore({ store }: Context, bus: Bus): () => void {
  const stopAnnouncing = store.onFlushed((position) => bus.announce(position));
  const stopListening = bus.onAnnounce(() => store.poll());
  const poll = setInterval(() => store.poll(), POLL_MS);
  return () => {
    clearInterval(poll);
    stopListening();
    stopAnnouncing();
  };
}

/** Writes now and then when keys were last used: no request waits for that. Returns the way to stop, with what is left written. */
function recordKeyUses(ctx: Context, log: Logger): () => Promise<void> {
  const write = async (): Promise<void> => {
    try {
      await writeKeyUses(ctx);
    } catch (error) {
      log.warn({ err: error }, 'the last uses of keys could not be written; they are tried again');
    }
  };
  const timer = setInterval(() => void write(), KEY_USES_MS);
  return async () => {
    clearInterval(timer);
    await write();
  };
}

function drainSteps({ config, status, server, http, realtime, stopRecording, disconnectStore }: Parts, reason: DrainReason): Step[] {
  const drainMs = config.shutdown.drainSeconds * 1_000;
  const spreadMs = config.shutdown.closeSpreadSeconds * 1_000;
  const stopListening = async (): Promise<void> => {
    await quietMoment();
    server.stopListening();
    // Not before: clients that hear `Connection: close` connect again, and could get this worker once more.
    status.draining = true;
  };
  const finish = async (): Promise<void> => {
    http.endStreams();
    await Promise.all([http.whenIdle(drainMs), realtime.close(spreadMs, drainMs)]);
  };
  // Whoever sends one more request on a connection that was idle gets it answered, and hears that it was the last.
  const linger = async (): Promise<void> => {
    await delay(IDLE_CONNECTION_MS);
    await http.whenIdle(drainMs);
  };
  const cut = async (): Promise<void> => {
    await delay(LAST_BYTES_MS);
    // A request on a connection that was kept may have come meanwhile: it is answered, like all that were read.
    await http.whenIdle(LAST_REQUESTS_MS);
    server.close();
    disconnectStore();
  };
  return [
    { name: 'accept no more connections', withinMs: 2_000, run: stopListening },
    { name: 'finish requests and close sockets', withinMs: spreadMs + drainMs + 500, run: finish },
    ...(reason === 'roll' ? [{ name: 'wait for idle connections', withinMs: IDLE_CONNECTION_MS + drainMs, run: linger }] : []),
    { name: 'write when keys were last used', withinMs: 1_000, run: stopRecording },
    { name: 'end the connections that are left', withinMs: 1_000, run: cut },
  ];
}
