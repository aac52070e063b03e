import { asError, messageOf } from '../../lib/thrown.ts';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import type { EventType } from '../../model/event.ts';
import type { CommandOptions, FilterName, FilterOptions, QueueOptions, RouteOptions } from '../api.ts';
import type { PluginSettings } from '../loading/settings.ts';

/** The data with which the thread of a plugin starts. */
export interface PluginThreadData {
  readonly entry: PluginEntry;
  readonly publicUrl: string;
}

/** A plugin that was loaded and set up, without its functions. */
export interface PluginInfo {
  readonly name: string;
  readonly version: string;
  /** Whether its filters have to run in a thread. */
  readonly isolated: boolean;
  readonly settings: PluginSettings;
  readonly hooks: {
    readonly filters: readonly { readonly name: FilterName; readonly options: Required<FilterOptions> }[];
    readonly actions: readonly {
      readonly type: EventType | '*';
      readonly timeoutMs: number;
      readonly whenKv: string | null;
      readonly typesIn: string | null;
      readonly ordered: boolean;
    }[];
    readonly queues: readonly { readonly name: string; readonly options: Required<QueueOptions> }[];
    readonly routes: readonly RouteOptions[];
    readonly commands: readonly CommandOptions[];
  };
}

/** What the thread in which plugins are checked together posts for each one that it has loaded. */
export interface LoadedTogether {
  /** The place of its entry. */
  readonly index: number;
  readonly info: PluginInfo;
}

/** A hook by its kind and its place among the hooks of that kind. */
export interface HookReference {
  readonly kind: 'filter' | 'action' | 'job' | 'route';
  readonly index: number;
}

/** An error as it is sent between threads. */
export interface SentError {
  readonly name: string;
  readonly message: string;
  /** Of a `RetryAfter`. */
  readonly ms?: number;
  /** Of a `CollabError`. */
  readonly code?: string;
  /** Of a `FilterFailure`. */
  readonly onError?: string;
  /** The message of its cause. */
  readonly cause?: string;
}

/** A message to the thread. */
export type ToPluginThread =
  /** `now` is the time that the hook sees; that of the clock without it. */
  | {
      readonly type: 'run';
      readonly id: number;
      readonly hook: HookReference;
      readonly argument: unknown;
      readonly context: object;
      readonly now?: number | undefined;
    }
  /** The deadline of a run has passed: its signal is aborted. */
  | { readonly type: 'cancel'; readonly id: number }
  | { readonly type: 'ping' }
  /** The result of a `call`. */
  | { readonly type: 'result'; readonly id: number; readonly value?: unknown; readonly error?: SentError };

/** A message from the thread. */
export type FromPluginThread =
  | { readonly type: 'ready'; readonly info: PluginInfo }
  /** `options` as in `PluginError`. */
  | { readonly type: 'failed'; readonly message: string; readonly options: readonly string[] }
  | { readonly type: 'done'; readonly id: number; readonly value?: unknown; readonly error?: SentError }
  | { readonly type: 'pong' }
  /** `run`: the run that calls; absent for what a plugin does outside of its hooks. */
  | {
      readonly type: 'call';
      readonly id: number;
      readonly run?: number | undefined;
      readonly method: string;
      readonly args: readonly unknown[];
    }
  | {
      readonly type: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly fields: Readonly<Record<string, unknown>>;
      readonly message: string;
    };

/** An error in the form that can be sent. */
export function sentError(thrown: unknown): SentError {
  const error = asError(thrown);
  const { name, message, cause } = error;
  const { ms, code, onError } = error as { ms?: unknown; code?: unknown; onError?: unknown };
  return {
    name,
    message,
    ...(typeof ms === 'number' ? { ms } : {}),
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof onError === 'string' ? { onError } : {}),
    ...(cause instanceof Error ? { cause: messageOf(cause) } : {}),
  };
}

/** An error that was sent. */
export function receivedError({ message, ...fields }: SentError): Error {
  return Object.assign(new Error(message), fields);
}
