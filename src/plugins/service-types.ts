import type { Comment } from '../model/comment.ts';
import type { EventEnvelope } from '../model/event.ts';
import type { FilterTypes } from '../model/filter.ts';
import type { Job, NewJob } from '../model/job.ts';
import type { Json } from '../model/json.ts';
import type { Notification } from '../model/notification.ts';
import type { Thread } from '../model/thread.ts';
import type { User } from '../model/user.ts';

// The services that the host gives to a plugin; api.ts has them in the API of plugins.

/** A value that can be sent to another thread (structured clone) and stored as JSON. */
export type Payload = Json;
/** An environment, as plugins see it. */
export type PluginEnvironment = Readonly<{ id: string; slug: string }>;

/** An entry of the key-value store. */
export type KvEntry = Readonly<{ key: string; value: Payload }>;

/**
 * Durable storage of a plugin in one environment; it is deleted with the environment. Keys are 1 to 200 characters of
 * printable ASCII without spaces, values at most 262 144 characters as JSON. A promise resolves once the change is on
 * disk.
 */
export interface Kv {
  get(key: string): Promise<Payload | undefined>;
  put(key: string, value: Payload): Promise<void>;
  delete(key: string): Promise<void>;
  /** Stores `value` if the current value equals `expected` (undefined: no entry), and returns whether it did. */
  replace(key: string, expected: Payload | undefined, value: Payload): Promise<boolean>;
  /** The entries in the order of their keys, at most `limit` (1 to 1 000; 100 by default). */
  list(options?: {
    readonly prefix?: string;
    readonly after?: string;
    readonly limit?: number;
  }): Promise<readonly KvEntry[]>;
}

/** How the jobs of a queue are run. */
export interface QueueOptions {
  /**
   * Milliseconds to wait before each further attempt, with a jitter of ±10 %; after the last one the job is dead. At
   * most 100, each up to 30 days.
   */
  readonly retryDelaysMs: readonly number[];
  /** Jobs that run at once over all environments, 1 to 256; 8 by default. */
  readonly concurrency?: number;
  /**
   * Jobs of one group that run at once; no bound by default. Groups take turns, so slow jobs of one never delay
   * another's.
   */
  readonly groupConcurrency?: number;
  /** Deadline of one attempt in milliseconds, 100 to 60 000; 20 000 by default. */
  readonly timeoutMs?: number;
}

/**
 * A durable queue of jobs: each is run at least once, by one process, until it succeeds or is dead. Dead jobs are kept
 * for 30 days.
 */
export interface Queue {
  /**
   * Adds jobs with one commit. A job whose id is in the queue already is left as it is. A job without delay starts at
   * once.
   */
  add(environment: PluginEnvironment, jobs: readonly NewJob[]): Promise<void>;
  get(environment: PluginEnvironment, id: string): Promise<Job | undefined>;
  /** Removes a job; no effect if there is none. */
  remove(environment: PluginEnvironment, id: string): Promise<void>;
  /** Makes a job due now, with all its attempts left, and returns whether there is such a job. */
  retry(environment: PluginEnvironment, id: string): Promise<boolean>;
  /** The jobs of a state in the order of `dueAt`, at most `limit` (1 to 1 000; 100 by default). */
  list(
    environment: PluginEnvironment,
    options: { readonly state: Job['state']; readonly after?: string; readonly limit?: number },
  ): Promise<readonly Job[]>;
  /** The number of jobs of each state. */
  count(environment: PluginEnvironment): Promise<Readonly<Record<Job['state'], number>>>;
}

/** A request to another server. */
export interface HttpRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Milliseconds for the whole exchange, 100 to 60 000; 15 000 by default. */
  readonly timeoutMs?: number;
  /** Largest body of the response in bytes, 0 to 16 MiB; 1 MiB by default. A longer one is a failure. */
  readonly maxBytes?: number;
}

/**
 * The response of another server. Names of headers are in lower case. `retryAfterMs` is the wait of `retry-after`, null
 * without it.
 */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly retryAfterMs: number | null;
}

/**
 * Requests to other servers; redirects are not followed. Private, local and special-purpose addresses are refused,
 * unless the operator allows them for the plugin (`allowPrivate`); the address that was checked is the one connected
 * to.
 */
export interface Http {
  /**
   * Rejects if there is no answer in time. Sends the request again if the server closes a kept connection before it
   * answers.
   */
  request(url: string, request?: HttpRequest): Promise<HttpResponse>;
  /**
   * Why requests to a URL are refused, in words for the operator; null if they may be sent. Names are not looked up:
   * `request` refuses one that resolves to a private address.
   */
  refusal(url: string): Promise<string | null>;
}

/** Reads of the environment's data, in the shapes of the REST API. */
export interface Data {
  thread(environment: PluginEnvironment, threadId: string): Promise<Thread | undefined>;
  /**
   * The comments of a thread, oldest first, at most `limit` (1 to 1 000; 100 by default); with `latest`, the last ones.
   */
  comments(
    environment: PluginEnvironment,
    threadId: string,
    options?: { readonly limit?: number; readonly latest?: boolean },
  ): Promise<readonly Comment[]>;
  comment(environment: PluginEnvironment, commentId: string): Promise<Comment | undefined>;
  user(environment: PluginEnvironment, userId: string): Promise<User | undefined>;
  /** Whether the user has a connection that is in the room now. */
  isPresent(environment: PluginEnvironment, userId: string, roomId: string): Promise<boolean>;
  /**
   * The notification as it is now; undefined if it was removed, the user may not see its room any more (by their latest
   * token), or has muted or left its thread since. Ask before each delivery.
   */
  notification(
    environment: PluginEnvironment,
    userId: string,
    notificationId: string,
  ): Promise<Notification | undefined>;
  /**
   * Whether the user's settings let a channel deliver this kind of notification. Channels have the names of their
   * plugins.
   */
  wantsNotification(
    environment: PluginEnvironment,
    userId: string,
    channel: string,
    kind: Notification['kind'],
  ): Promise<boolean>;
  /** Sets one preference of a user, as `PUT /users/:userId/notification-settings` does. */
  setPreference(
    environment: PluginEnvironment,
    userId: string,
    channel: string,
    kind: Notification['kind'],
    enabled: boolean,
  ): Promise<void>;
  /** The events of the log after `since`, at most `limit` (1 to 1 000). */
  events(environment: PluginEnvironment, since: number, limit: number): Promise<readonly EventEnvelope[]>;
  /** Runs the filters of a name, as before a delivery, and returns whether none of them rejects. */
  passes<N extends 'notification.deliver' | 'webhook.deliver'>(
    environment: PluginEnvironment,
    name: N,
    payload: FilterTypes[N]['payload'],
  ): Promise<boolean>;
}

/** The log of a plugin. Lines carry its name. */
export type PluginLog = Readonly<
  Record<'debug' | 'info' | 'warn' | 'error', (fields: Readonly<Record<string, unknown>>, message: string) => void>
>;
