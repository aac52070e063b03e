import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../config/schema.ts';
import type { Context } from '../domain/context.ts';
import type { NodeFacts } from '../domain/nodes.ts';
import { writeKeyUses } from '../domain/access/key-uses.ts';
import type { ServerStatus } from '../http/health.ts';
import type { HttpServer } from '../net/core.ts';
import { chooseCore, type CoreChoice } from '../net/core-check.ts';
import { ReadBarrier, pollBatches } from '../net/read-barrier.ts';
import { createServer } from '../net/listen.ts';
import { attachHttp, type Http } from '../http/server.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Traces } from '../observability/traces.ts';
import type { Logger } from '../observability/log.ts';
import type { Bus } from '../ports/bus.ts';
import type { WebPlugins } from '../plugins/web/web-plugins.ts';
import { attachRealtime, type Realtime } from '../realtime/server.ts';
import { socketSchemas } from '../realtime/socket-schemas.ts';
import { StartError } from '../cluster/exit.ts';
import { idleIteration, type ShutdownStep } from '../cluster/shutdown.ts';
import { announceCommits, followAnnouncements } from './announcements.ts';
import { logListenerErrors } from './listener-errors.ts';
import type { DrainReason, ReadyData } from '../cluster/messages.ts';

/** How often a worker checks for commits that are not announced: those of CLI commands. */
const POLL_MS = 250;
/** How old the time of a key's last use may be in lists. */
const KEY_USES_MS = 5_000;
/** The HTTP core closes a connection that was idle for 10 s; until then the client may send another request. */
const IDLE_CONNECTION_MS = 10_500;
/** Time for the last responses and close frames to get from the kernel to the network before connections are closed. */
const LAST_BYTES_MS = 50;
/** Time for requests that arrived on open connections after all others were answered. */
const LAST_REQUESTS_MS = 500;
/** The environment of the demo page, which every new data folder has. */
const DEMO_ENVIRONMENT = 'default';

/** Options of a web worker. */
export interface WebWorkerOptions {
  readonly config: Config;
  readonly ctx: Context;
  readonly bus: Bus;
  readonly log: Logger;
  /** The owner of this worker's entries in shared memory. */
  readonly owner: string;
  /** What it says of its server to the others that share the store; undefined if no other one can. */
  readonly node?: NodeFacts | undefined;
  /** Port to listen on, shared with the other workers; 0 takes a free one that is not shared. */
  readonly port: number;
  /** Absent while metrics are disabled. */
  readonly metrics?: Metrics | undefined;
  /** Absent while no traces are sent. */
  readonly traces?: Traces | null | undefined;
  /** The routes of plugins; none if absent. */
  readonly plugins?: Pick<WebPlugins, 'routes'> | undefined;
  /** How many plugins the server runs without; none if absent. */
  readonly missingPlugins?: (() => number) | undefined;
  /** Whether the background worker cannot start; false if absent. */
  readonly backgroundFailing?: (() => boolean) | undefined;
}

/** A running web worker. */
export interface WebWorker {
  /** Where it listens, and on which core. */
  readonly ready: ReadyData;
  /**
   * The steps of its shutdown. Within their time limits, every accepted request is answered and no connection is cut
   * off.
   */
  drain(reason: DrainReason): readonly ShutdownStep[];
}

/** The parts of a worker that its shutdown stops. */
interface Parts {
  readonly config: Config;
  readonly status: ServerStatus;
  readonly server: HttpServer;
  readonly http: Http;
  readonly realtime: Realtime;
  readonly stopRecording: () => Promise<void>;
  readonly unfollowCommits: () => void;
}

/**
 * Serves HTTP and WebSocket on the configured host and the given port, and passes announcements between the store and
 * the bus.
 *
 * @throws {StartError} if the option `core` demands the native core, and it does not run here or corrupts responses
 * @throws {Error} if it cannot listen, with a message for the operator
 */
export async function runWebWorker({
  config,
  ctx,
  bus,
  log,
  owner,
  node,
  port,
  metrics,
  traces,
  plugins,
  missingPlugins = () => 0,
  backgroundFailing = () => false,
}: WebWorkerOptions): Promise<WebWorker> {
  const core = await requireCore(config);
  const status: ServerStatus = {
    draining: false,
    missingPlugins,
    backgroundFailing,
    areMessagesArriving: bus.isWorking === undefined ? undefined : () => bus.isWorking === true,
  };
  const barrier = new ReadBarrier(ctx.operations?.expireOnInput() ?? (() => {}), pollBatches(core.kind));
  const server = createServer(core.kind, barrier);
  const realtime = attachRealtime(server.app, { ctx, config, log, bus, owner, node, metrics });
  const demo = config.demo ? await (await import('../demo/demo.ts')).startDemo(ctx, DEMO_ENVIRONMENT) : undefined;
  const http = attachHttp(server.app, {
    ctx,
    config,
    log,
    status,
    barrier,
    metrics,
    traces,
    demo,
    plugins: plugins?.routes,
    socketSchemas,
  });
  logListenerErrors(ctx.store, log);
  const unfollowCommits = followCommits(ctx, bus);
  if (metrics !== undefined) timeCommits(ctx, metrics);
  metrics?.gauge('core', () => [[{ core: core.kind }, 1]]);
  const stopRecording = recordKeyUses(ctx, log);
  return {
    ready: {
      port: await server.listen(config.host, port),
      core: core.name,
      coreReason: core.reason,
      oldCore: core.old,
    },
    drain: (reason) => drainSteps({ config, status, server, http, realtime, stopRecording, unfollowCommits }, reason),
  };
}

/**
 * The core to serve on. Throws a `StartError` if the native core is demanded, and does not run here or corrupts
 * responses.
 */
async function requireCore({ core }: Config): Promise<CoreChoice> {
  const choice = await chooseCore(core);
  const { check } = choice;
  if (choice.kind === 'uws' && check?.level === 'fail') throw new StartError(`${check.finding}. ${check.remedy ?? ''}`);
  return choice;
}

function timeCommits({ store }: Context, metrics: Metrics): void {
  const durations = metrics.histogram('lmdb_txn_duration_seconds');
  store.onFlushed((_growth, ms) => durations.observe(ms / 1000));
}

/**
 * Passes announcements between the store and the bus, and polls the store for commits that were not announced. Returns
 * a function that stops it.
 */
function followCommits({ store }: Context, bus: Bus): () => void {
  const disconnect = [announceCommits(store, bus), followAnnouncements(store, bus)];
  const poll = setInterval(() => store.poll(), POLL_MS);
  return () => {
    clearInterval(poll);
    for (const stop of disconnect) stop();
  };
}

/**
 * Regularly records when keys were last used, outside of requests. Returns a function that stops it and records the
 * rest.
 */
function recordKeyUses(ctx: Context, log: Logger): () => Promise<void> {
  const write = async (): Promise<void> => {
    try {
      await writeKeyUses(ctx);
    } catch (error) {
      log.warn({ err: error }, 'the times when keys were last used could not be written; they will be retried');
    }
  };
  const timer = setInterval(() => void write(), KEY_USES_MS);
  return async () => {
    clearInterval(timer);
    await write();
  };
}

function drainSteps(
  { config, status, server, http, realtime, stopRecording, unfollowCommits }: Parts,
  reason: DrainReason,
): ShutdownStep[] {
  const drainMs = config.shutdown.drainSeconds * 1_000;
  const spreadMs = config.shutdown.closeSpreadSeconds * 1_000;
  const stopListening = async (): Promise<void> => {
    await idleIteration();
    server.stopListening();
    // Not earlier: clients that receive `Connection: close` reconnect, and could reach this worker again.
    status.draining = true;
  };
  const finish = async (): Promise<void> => {
    http.endStreams();
    await Promise.all([http.whenIdle(drainMs), realtime.close(spreadMs, drainMs)]);
  };
  // A request on a connection that was idle is still answered, with `Connection: close`.
  const linger = async (): Promise<void> => {
    await delay(IDLE_CONNECTION_MS);
    await http.whenIdle(drainMs);
  };
  const cut = async (): Promise<void> => {
    await delay(LAST_BYTES_MS);
    // Requests that arrived on open connections in the meantime are answered as well.
    await http.whenIdle(LAST_REQUESTS_MS);
    server.close();
    unfollowCommits();
  };
  return [
    { name: 'stop accepting connections', withinMs: 2_000, run: stopListening },
    { name: 'finish requests and close sockets', withinMs: spreadMs + drainMs + 500, run: finish },
    ...(reason === 'roll'
      ? [{ name: 'wait for idle connections', withinMs: IDLE_CONNECTION_MS + drainMs, run: linger }]
      : []),
    { name: 'write the times when keys were last used', withinMs: 1_000, run: stopRecording },
    { name: 'close the remaining connections', withinMs: 1_000, run: cut },
  ];
}
