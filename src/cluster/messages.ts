import type { Config } from '../config/schema.ts';
import type { MetricsReport } from '../observability/metrics.ts';
import type { Publication } from '../ports/bus.ts';

export type Role = 'web' | 'background';

/** What the primary tells a new worker process before anything else. */
export interface StartData {
  readonly config: Config;
  /** Names the process in the log and owns its counts in shared memory; never used twice in the life of a primary. */
  readonly workerId: string;
  /** The port to listen on, chosen already when the configuration says 0. */
  readonly port: number;
}

export interface ReadyData {
  /** Where a web worker listens; 0 from a background worker. */
  readonly port: number;
  /** File of the HTTP core; empty from a background worker. */
  readonly core: string;
  /** Whether that is the old core of Node 20, which must not be exposed without a proxy. */
  readonly oldCore: boolean;
}

/**
 * `stop`: the whole server ends, connections that idle are cut. `roll`: another worker has taken over, so this one
 * lingers until every connection has had its chance to hear `Connection: close`.
 */
export type DrainReason = 'stop' | 'roll';

/** The registry: every message that processes of a cluster send each other, and what it carries. */
interface Messages {
  /** Primary to worker, first of all. */
  readonly start: StartData;
  /** Worker to primary: it serves. */
  readonly ready: ReadyData;
  /** Worker to primary: it ends because of this. `permanent` when another attempt would fail in the same way. */
  readonly failed: { readonly reason: string; readonly permanent: boolean };
  /** Both ways: everything up to `position` is flushed, look at the log. */
  readonly announce: { readonly position: number };
  /** Both ways: what one worker tells the others about rooms, as much as came up in a turn. */
  readonly publish: { readonly publications: readonly Publication[] };
  /** Primary to web worker, whenever it changes: so many others hear what it announces and publishes. */
  readonly company: { readonly others: number };
  /** Worker to primary, once a second while metrics.port is set: what it has counted since. */
  readonly metrics: MetricsReport;
  /** Primary to worker, every second: answer with a pong. */
  readonly ping: object;
  /** Worker to primary: its event loop runs. */
  readonly pong: object;
  /** Primary to worker: finish what runs, then exit. */
  readonly drain: { readonly reason: DrainReason };
  /** Primary to background worker: this process has ended, clean up after it. */
  readonly ended: { readonly workerId: string };
  /** Background worker to primary: that is done. */
  readonly cleaned: { readonly workerId: string };
}

export type MessageType = keyof Messages;
export type Message = { readonly [T in MessageType]: { readonly type: T; readonly data: Messages[T] } }[MessageType];

type Fields = Readonly<Record<string, unknown>>;

const wellFormed: { readonly [T in MessageType]: (data: Fields) => boolean } = {
  start: ({ config, workerId, port }) => typeof config === 'object' && typeof workerId === 'string' && typeof port === 'number',
  ready: ({ port, core, oldCore }) => typeof port === 'number' && typeof core === 'string' && typeof oldCore === 'boolean',
  failed: ({ reason, permanent }) => typeof reason === 'string' && typeof permanent === 'boolean',
  announce: ({ position }) => typeof position === 'number',
  publish: ({ publications }) => Array.isArray(publications) && publications.every(isPublication),
  company: ({ others }) => typeof others === 'number',
  metrics: ({ counters, gauges, histograms }) => isFields(counters) && isFields(gauges) && isFields(histograms),
  ping: () => true,
  pong: () => true,
  drain: ({ reason }) => reason === 'stop' || reason === 'roll',
  ended: ({ workerId }) => typeof workerId === 'string',
  cleaned: ({ workerId }) => typeof workerId === 'string',
};

/** What came through a channel as a message, or null when it is none of ours: such things are ignored, not guessed. */
export function readMessage(raw: unknown): Message | null {
  if (!isFields(raw) || typeof raw['type'] !== 'string' || !Object.hasOwn(wellFormed, raw['type'])) return null;
  const check = wellFormed[raw['type'] as MessageType];
  const data = raw['data'];
  return check(isFields(data) ? data : {}) ? (raw as unknown as Message) : null;
}

function isPublication(value: unknown): value is Publication {
  return isFields(value) && typeof value['topic'] === 'string' && typeof value['text'] === 'string';
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}
