import type { Static, TSchema } from 'typebox';
import type { EventEnvelope, EventType } from '../model/event.ts';
import type { FilterActor, FilterTypes } from '../model/filter.ts';
import type { Job } from '../model/job.ts';
import type { Data, Http, Kv, Payload, PluginEnvironment, PluginLog, Queue, QueueOptions } from './service-types.ts';

/**
 * The types of all events, and a committed event, as the WebSocket and the event log have it. `eventId` is the same in
 * every attempt.
 */
export { eventTypes, type EventEnvelope as PluginEvent } from '../model/event.ts';
/** The filters with their payloads and patches, and the client whose request runs them. */
export type { DraftComment, DraftPatch, FilterActor as PluginActor, FilterTypes } from '../model/filter.ts';
/** The jobs of queues. */
export type { Job, NewJob } from '../model/job.ts';
/** The notification of one user, as the inbox stores it. */
export type { Notification as PluginNotification } from '../model/notification.ts';

/** The services of the host: storage, queues, requests to other servers, data and log. */
export type {
  Data,
  Http,
  HttpRequest,
  HttpResponse,
  Kv,
  KvEntry,
  Payload,
  PluginEnvironment,
  PluginLog,
  Queue,
  QueueOptions,
} from './service-types.ts';

/**
 * The version of this API, which plugins import as `collab/plugin` (docs/plugins.md). A plugin names the one that it
 * was written for.
 */
export const API_VERSION = 1;

/** The name of a filter. */
export type FilterName = keyof FilterTypes;
/** The filters whose content can be held for moderation. */
export type HoldableFilter = 'comment.create' | 'comment.update' | 'thread.create';

/** Refuses what is filtered; made by `reject`. The client sees the message. */
export type Rejection = Readonly<{ outcome: 'reject'; message: string; status: 400 | 403 }>;
/** Holds what is filtered until a moderator decides; made by `hold`. Only moderators see the reason. */
export type Hold = Readonly<{ outcome: 'hold'; reason: string }>;
/** The result of a filter: nothing to leave the payload as it is, a patch, or a verdict. */
export type FilterResult<N extends FilterName> =
  | void
  | undefined
  | FilterTypes[N]['patch']
  | Rejection
  | (N extends HoldableFilter ? Hold : never);

/** Refuses what is filtered with a message for the client. */
export function reject(message: string, status: 400 | 403 = 403): Rejection {
  return { outcome: 'reject', message, status };
}

/** Holds a comment or thread until a moderator approves or rejects it. */
export function hold(reason: string): Hold {
  return { outcome: 'hold', reason };
}

/** The context that every hook receives besides its payload. */
export interface HookContext<Config> {
  readonly environment: PluginEnvironment;
  /** The plugin's configuration in this environment. */
  readonly config: Config;
  /**
   * Aborted at the deadline of the hook, and when the process shuts down. A copy made with `{ ...context }` may lack
   * it.
   */
  readonly signal: AbortSignal;
}

/** The context that a filter receives besides its payload. */
export type FilterContext<Config> = HookContext<Config> & { readonly actor: FilterActor };

/** How a filter is run. */
export interface FilterOptions {
  /** Filters of higher priority run first; 100 by default. Equal ones run in the order of the configuration. */
  readonly priority?: number;
  /** Deadline in milliseconds, 100 to 10 000; 2 000 by default. */
  readonly timeoutMs?: number;
  /**
   * The effect of a failure or a passed deadline: `open` lets the payload pass (the default), `closed` refuses it,
   * `hold` holds it.
   */
  readonly onError?: 'open' | 'closed' | 'hold';
}

/**
 * Thrown by a filter whose `onError` depends on something, such as its configuration. It counts as a failure: after 5
 * in a row the filter is not called in this environment for 30 s, and the last `onError` applies. The log has its
 * message, and that of its `cause`.
 */
export class FilterFailure extends Error {
  override readonly name = 'FilterFailure';
  readonly onError: 'open' | 'closed' | 'hold';
  /** @param message shown to moderators if the content is held */
  constructor(message: string, onError: 'open' | 'closed' | 'hold', options?: ErrorOptions) {
    super(message, options);
    this.onError = onError;
  }
}

/** Changes, refuses or holds a write between its validation and its commit. */
export type Filter<N extends FilterName, Config> = (
  payload: FilterTypes[N]['payload'],
  context: FilterContext<Config>,
) => FilterResult<N> | Promise<FilterResult<N>>;

/** The context that an action receives besides its event. `attempt` counts from 1. */
export type ActionContext<Config> = HookContext<Config> & { readonly attempt: number };
/** The context that a job receives besides itself. */
export type JobContext<Config> = ActionContext<Config>;

/** How an action is run. */
export interface ActionOptions {
  /**
   * Deadline of one attempt in milliseconds, 100 to 60 000; 10 000 by default. The attempt has failed then; a plugin
   * that is in an endless loop is ended and restarted.
   */
  readonly timeoutMs?: number;
  /**
   * Handles only events of environments in which the plugin's storage has a key with this prefix, such as `endpoint/`.
   * In the others an event costs nothing. Events from before the first such key are not handled.
   */
  readonly whenKv?: string;
  /**
   * The field of the values under `whenKv` that lists the types of events to handle, or is null for all. Others cost
   * nothing.
   */
  readonly typesIn?: string;
  /**
   * Whether events of one thread are handled in order, the next one when the one before is finished; true by default.
   * If false, a thread with many events is handled faster. Takes effect only if it is false for every action of the
   * plugin.
   */
  readonly ordered?: boolean;
}

/**
 * Reacts to a committed event, at least once, outside the web workers. A rejection is tried again after 1 s, 10 s and
 * 60 s, or as long as the disk of the server is full or failing; then the event is skipped and logged. Use a queue for
 * deliveries to others.
 */
export type Action<Config> = (event: EventEnvelope, context: ActionContext<Config>) => void | Promise<void>;

/**
 * Thrown by a job to be tried again at a certain time instead of after the queue's next delay. It counts as an attempt.
 */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter';
  readonly ms: number;
  /** @param ms milliseconds until the next attempt, 0 to 7 days */
  constructor(message: string, ms: number) {
    super(message);
    this.ms = ms;
  }
}

/** Thrown by a job that no further attempt can complete: it becomes a dead job at once. */
export class Permanent extends Error {
  override readonly name = 'Permanent';
}

/** A request to a route of a plugin. */
export interface RouteRequest {
  /** The user of the token, on a route with the credential `user`; null otherwise. */
  readonly userId: string | null;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as text, at most 64 KiB; '' if there is none. */
  readonly body: string;
}

/** The response of a route. */
export interface RouteResponse {
  readonly status: 200 | 201 | 400 | 401 | 403 | 404 | 409 | 410;
  readonly body: string;
  /** `application/json` by default. */
  readonly contentType?: 'application/json' | 'text/html; charset=utf-8' | 'text/plain; charset=utf-8';
}

/**
 * A route of a plugin, served at `/api/v1/plugins/<plugin>/<environment slug>/<path>`, within the rate limit of the
 * API.
 */
export interface RouteOptions {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Lower-case letters, digits and hyphens; no slashes. */
  readonly path: string;
  /** `user` is a publishable key and a user token, `secret` a secret key, `public` none. */
  readonly credential: 'user' | 'secret' | 'public';
}

/** A command line option of a command. `flag` has commander's format: `--url <url>`, `--all`. */
export type CommandOption = Readonly<{ flag: string; description: string; required?: boolean }>;

/** A call of a command. */
export interface CommandCall<Config> {
  /** The values of the command's arguments in their order. */
  readonly arguments: readonly string[];
  /** The values of the options by their names in camel case: a text, or true for a flag without a value. */
  readonly options: Readonly<Record<string, string | true | undefined>>;
  /** The environment of `--env`, which every command takes. */
  readonly environment: PluginEnvironment;
  readonly config: Config;
  /** Asks for confirmation, unless the operator gave `--yes`; throws if it is denied. */
  confirm(question: string): Promise<void>;
}

/** The result of a command. */
export interface CommandResult {
  /** The output with `--json`. */
  readonly json: Payload;
  /** The output otherwise: lines of text, or a table with a header row. */
  readonly text: string | { readonly header: readonly string[]; readonly rows: readonly (readonly string[])[] };
  /** Command lines to suggest, such as `collab webhook test wh_1 --env default`. */
  readonly next?: readonly string[];
  /**
   * If the command has failed: what has, in a full sentence. It follows the output, on standard error, and the exit
   * code is 1.
   */
  readonly failure?: string;
}

/**
 * A command of the command line, called as `collab <plugin> <name>`. It runs beside a running server too. The audit log
 * records it if it changes something.
 */
export interface CommandOptions {
  /** Its name and arguments in commander's format: `add`, `test <id>`. */
  readonly name: string;
  readonly summary: string;
  readonly examples: readonly string[];
  readonly options?: readonly CommandOption[];
}

/** Thrown by a command or route for a mistake of its caller. The message names what is wrong and what is allowed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /**
   * Remedies, one sentence each. Commands in backticks are printed with the `--dir` of the call. Only the command line
   * shows them.
   */
  readonly remedies: readonly string[];
  constructor(message: string, remedies: readonly string[] = []) {
    super(message);
    this.remedies = remedies;
  }
}

/** The host of a plugin: registers its hooks, and provides services to them. */
export interface PluginHost<Config> {
  /** The name of the plugin. */
  readonly name: string;
  /** The public address of the server (`publicUrl`), without a trailing slash; '' if it is not configured. */
  readonly publicUrl: string;
  /**
   * The time in milliseconds since the epoch; in a backtest, that of the tested comment. Plugins ask it instead of
   * `Date.now`, so that tests control it.
   */
  now(): number;
  readonly log: PluginLog;
  readonly http: Http;
  readonly data: Data;
  /** The plugin's storage in an environment. */
  kv(environment: PluginEnvironment): Kv;
  /** Registers a filter. It runs in the web workers, or in a thread with `isolation: 'worker'`. */
  filter<N extends FilterName>(name: N, filter: Filter<N, Config>, options?: FilterOptions): void;
  /** Registers an action for events of a type; `*` for all. Actions run in a thread of the background worker. */
  action(type: EventType | '*', action: Action<Config>, options?: ActionOptions): void;
  /**
   * Registers a queue, which runs in the thread of the plugin's actions, and returns it. Every context of the plugin
   * may add jobs.
   */
  queue(
    name: string,
    run: (job: Job, context: JobContext<Config>, environment: PluginEnvironment) => void | Promise<void>,
    options: QueueOptions,
  ): Queue;
  /** Registers a route. It runs in the web workers, with `isolation` in a thread of its own, with a deadline of 5 s. */
  route(
    options: RouteOptions,
    handle: (request: RouteRequest, context: HookContext<Config>) => RouteResponse | Promise<RouteResponse>,
  ): void;
  /** Registers a command. */
  command(options: CommandOptions, run: (call: CommandCall<Config>) => CommandResult | Promise<CommandResult>): void;
}

/** A plugin: the default export of its module. */
export interface Plugin<S extends TSchema = TSchema> {
  /** `^[a-z][a-z0-9-]{1,39}$`; unique among the plugins of a server, and not the name of one that ships with Collab. */
  readonly name: string;
  readonly version: string;
  readonly apiVersion: 1;
  /**
   * The schema of its configuration in an environment; its defaults are applied. An option with `isPath: true` is a
   * path: hooks receive it absolute, a relative one resolved from the folder of config.json. Of objects too, not of
   * items of arrays.
   */
  readonly config: S;
  /** `worker` runs the filters in a thread too, which can be ended when they hang. */
  readonly isolation?: 'worker';
  /**
   * Registers the hooks, the same ones every time, and starts nothing itself. Called in each process or thread that
   * runs hooks of it.
   */
  setup(host: PluginHost<Static<S>>): void | Promise<void>;
}

/** Defines a plugin. Its types follow from `config`. */
export function definePlugin<S extends TSchema>(plugin: Plugin<S>): Plugin<S> {
  return plugin;
}
