import type { Config } from '../config/schema.ts';
import type { MetricsReport } from '../observability/metrics.ts';
import { isStreamPosition, type Publication } from '../ports/bus.ts';
import type { BusMessages } from '../ports/bus-messages.ts';

/** The role of a worker process: serve clients, or background work. */
export type Role = 'web' | 'background';

/** The first message of the primary to a new worker process. */
export interface StartData {
  readonly config: Config;
  /** Names the process in the log and the metrics: `web-1`. Unique for the life of a primary. */
  readonly workerId: string;
  /** Owns the entries of the process in shared memory. No process of any machine has had it, also before a restart. */
  readonly owner: string;
  /** Names this server among those that share its store. No other one has had it, also before a restart. */
  readonly node: string;
  /** The port to listen on; already chosen if the configuration says 0. */
  readonly port: number;
  /** When the server was started, in milliseconds since the epoch: before any worker served. */
  readonly startedAt: number;
}

/** The report of a worker that is ready. */
export interface ReadyData {
  /** The port that a web worker listens on; 0 from a background worker. */
  readonly port: number;
  /** File of the native HTTP core, or `node`; empty from a background worker. */
  readonly core: string;
  /** Why it is not the native core; empty if it is. */
  readonly coreReason: string;
  /** Whether it is the old core for Node 20, which must not be exposed without a proxy. */
  readonly oldCore: boolean;
}

/**
 * `stop`: the whole server ends; idle connections are closed. `roll`: another worker has taken over, so this one keeps
 * serving each open connection until it has sent it `Connection: close`.
 */
export type DrainReason = 'stop' | 'roll';

/** The messages between the processes of a cluster: data by type. */
interface Messages extends BusMessages {
  /** Primary to worker, always first. */
  readonly start: StartData;
  /** Worker to primary: it is ready to serve. */
  readonly ready: ReadyData;
  /**
   * Background worker to primary, before it is ready, and primary to web workers: the `use` of the plugins that the
   * background worker could not load.
   */
  readonly missingPlugins: { readonly uses: readonly string[] };
  /**
   * Primary to web workers: whether the background worker has ended again and again without having been ready, and is
   * not ready now.
   */
  readonly background: { readonly isFailing: boolean };
  /**
   * Worker to primary: it exits for this reason. `exitCode`: that of a start which fails for it, because a new worker
   * would fail in the same way; null if it may not.
   */
  readonly failed: { readonly reason: string; readonly exitCode: number | null };
  /** Worker to primary, once a second while metrics.port is set: its counts since the last report. */
  readonly metrics: MetricsReport;
  /** Primary to worker, every second: answer with a pong. */
  readonly ping: object;
  /** Worker to primary: its event loop is running. */
  readonly pong: object;
  /** Primary to worker: finish the work in progress, then exit. */
  readonly drain: { readonly reason: DrainReason };
  /** Primary to background worker: the worker with these entries in shared memory has ended, clean up after it. */
  readonly ended: { readonly owner: string };
  /** Background worker to primary: that is done. */
  readonly cleaned: { readonly owner: string };
}

/** The names of the messages. */
export type MessageType = keyof Messages;
/** A message between processes of a cluster. */
export type Message = { readonly [T in MessageType]: { readonly type: T; readonly data: Messages[T] } }[MessageType];

type Fields = Readonly<Record<string, unknown>>;

const wellFormed: { readonly [T in MessageType]: (data: Fields) => boolean } = {
  // Not `owner`: a primary of an earlier version sends none, and its workers had better serve without presence.
  start: ({ config, workerId, port }) =>
    typeof config === 'object' && typeof workerId === 'string' && typeof port === 'number',
  ready: ({ port, core, coreReason, oldCore }) =>
    typeof port === 'number' &&
    typeof core === 'string' &&
    typeof coreReason === 'string' &&
    typeof oldCore === 'boolean',
  missingPlugins: ({ uses }) => isTexts(uses),
  background: ({ isFailing }) => typeof isFailing === 'boolean',
  failed: ({ reason, exitCode }) => typeof reason === 'string' && (exitCode === null || typeof exitCode === 'number'),
  announce: ({ streams }) => streams === null || (Array.isArray(streams) && streams.every(isStreamPosition)),
  publish: ({ publications }) => Array.isArray(publications) && publications.every(isPublication),
  listens: isListening,
  peers: isListening,
  topics: ({ id, subscribed, unsubscribed }) => typeof id === 'number' && isTexts(subscribed) && isTexts(unsubscribed),
  subscribed: ({ id }) => typeof id === 'number',
  metrics: ({ counters, gauges, histograms }) => isFields(counters) && isFields(gauges) && isFields(histograms),
  ping: () => true,
  pong: () => true,
  drain: ({ reason }) => reason === 'stop' || reason === 'roll',
  ended: ({ owner }) => typeof owner === 'string',
  cleaned: ({ owner }) => typeof owner === 'string',
};

/** Checks what was received from a channel; null if it is not a well-formed message, which is then ignored. */
export function readMessage(raw: unknown): Message | null {
  if (!isFields(raw) || typeof raw['type'] !== 'string' || !Object.hasOwn(wellFormed, raw['type'])) return null;
  const check = wellFormed[raw['type'] as MessageType];
  const data = raw['data'];
  return check(isFields(data) ? data : {}) ? (raw as unknown as Message) : null;
}

function isListening({ announcements, publications }: Fields): boolean {
  return typeof announcements === 'boolean' && typeof publications === 'boolean';
}

function isPublication(value: unknown): value is Publication {
  return isFields(value) && typeof value['topic'] === 'string' && typeof value['text'] === 'string';
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((text) => typeof text === 'string');
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}
