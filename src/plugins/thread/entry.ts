import { AsyncLocalStorage } from 'node:async_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { firstLine } from '../../lib/thrown.ts';
import type {
  ActionContext,
  FilterContext,
  FilterName,
  FilterTypes,
  HookContext,
  Job,
  JobContext,
  PluginEvent,
  PluginLog,
  RouteRequest,
} from '../api.ts';
import { type Hooks, setUp } from '../hooks.ts';
import { loadPlugin } from '../loading/load.ts';
import { PluginError } from '../loading/plugin-error.ts';
import { remoteServices } from '../services/services.ts';
import { infoOf } from './info.ts';
import {
  type FromPluginThread,
  type HookReference,
  receivedError,
  sentError,
  type PluginThreadData,
  type ToPluginThread,
} from './messages.ts';

// The entry of the thread of a plugin: it loads the plugin, posts `ready` or `failed`, and then runs hooks.

if (parentPort === null) throw new Error('this file runs only as a worker thread');
const port = parentPort;
const { entry, publicUrl } = workerData as PluginThreadData;
const calls = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
const runs = new Map<number, AbortController>();
/** The id of the run in which code is executed. */
const currentRun = new AsyncLocalStorage<number>();
let lastCall = 0;
/** The time of a dry run. */
let dryNow: number | undefined;

const post = (message: FromPluginThread): void => port.postMessage(message);

const logLine =
  (level: 'debug' | 'info' | 'warn' | 'error'): PluginLog['info'] =>
  (fields, message) =>
    post({
      type: 'log',
      level,
      fields: JSON.parse(JSON.stringify(fields, errorsAsText)) as Record<string, unknown>,
      message: String(message),
    });
const log: PluginLog = {
  debug: logLine('debug'),
  info: logLine('info'),
  warn: logLine('warn'),
  error: logLine('error'),
};

process.on('unhandledRejection', (error) =>
  log.error({ reason: firstLine(error) }, 'a promise of a plugin was rejected and nothing handled it'),
);
// Such as one in a timer. It would end the thread, and with it the runs of other hooks.
process.on('uncaughtException', (error) =>
  log.error({ reason: firstLine(error) }, 'an error of a plugin was not handled'),
);

function errorsAsText(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  return value instanceof Error ? value.message : value;
}

const services = remoteServices(
  publicUrl,
  log,
  () => dryNow ?? Date.now(),
  (method, args) => {
    const id = ++lastCall;
    return new Promise((resolve, reject) => {
      calls.set(id, { resolve, reject });
      post({ type: 'call', id, run: currentRun.getStore(), method, args });
    });
  },
);

async function start(): Promise<Hooks | null> {
  try {
    const loaded = await loadPlugin(entry);
    const hooks = await setUp(loaded.plugin, services);
    post({ type: 'ready', info: infoOf(loaded, hooks) });
    return hooks;
  } catch (error) {
    post({ type: 'failed', message: firstLine(error), options: error instanceof PluginError ? error.options : [] });
    return null;
  }
}

async function run(hooks: Hooks, hook: HookReference, subject: unknown, context: object): Promise<unknown> {
  if (hook.kind === 'filter')
    return hooks.filters[hook.index]?.filter(
      subject as FilterTypes[FilterName]['payload'],
      context as FilterContext<unknown>,
    );
  if (hook.kind === 'action')
    return hooks.actions[hook.index]?.action(subject as PluginEvent, context as ActionContext<unknown>);
  if (hook.kind === 'route')
    return hooks.routes[hook.index]?.handle(subject as RouteRequest, context as HookContext<unknown>);
  const jobContext = context as JobContext<unknown>;
  return hooks.queues[hook.index]?.run(subject as Job, jobContext, jobContext.environment);
}

const started = start();
port.on('message', (message: ToPluginThread) => {
  if (message.type === 'ping') post({ type: 'pong' });
  if (message.type === 'cancel') runs.get(message.id)?.abort();
  if (message.type === 'result') {
    const call = calls.get(message.id);
    calls.delete(message.id);
    if (message.error === undefined) call?.resolve(message.value);
    else call?.reject(receivedError(message.error));
  }
  if (message.type === 'run') void handleRun(message);
});

async function handleRun({
  id,
  hook,
  argument: subject,
  context,
  now,
}: Extract<ToPluginThread, { type: 'run' }>): Promise<void> {
  const hooks = await started;
  if (hooks === null) return;
  dryNow = now;
  const abort = new AbortController();
  runs.set(id, abort);
  try {
    const value = await currentRun.run(id, () => run(hooks, hook, subject, { ...context, signal: abort.signal }));
    post({ type: 'done', id, ...(hook.kind === 'filter' || hook.kind === 'route' ? { value } : {}) });
  } catch (error) {
    post({ type: 'done', id, error: sentError(error) });
  } finally {
    runs.delete(id);
  }
}
