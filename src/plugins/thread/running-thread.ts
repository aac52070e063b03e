import { Worker } from 'node:worker_threads';
import type { PluginEntry } from '../../config/plugin-entries.ts';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import { firstLine } from '../../lib/thrown.ts';
import type { PluginLog } from '../api.ts';
import { failLoading, LOAD_MS } from '../loading/load.ts';
import { PluginError } from '../loading/plugin-error.ts';
import { callService, isStoreMethod, type PluginServices } from '../services/services.ts';
import {
  type FromPluginThread,
  type PluginInfo,
  type PluginThreadData,
  sentError,
  type SentError,
  type ToPluginThread,
} from './messages.ts';

/** The memory that the objects of a thread may take. */
export const HEAP_MB = 256;
const YOUNG_GENERATION_MB = 32;

/** Why a thread ended. */
export type ThreadEnd = 'deadline' | 'memory' | 'ended';

/** What a thread tells the process that has started it. */
export interface ThreadListeners {
  /** The services of the plugin with this name; called once it has loaded. */
  readonly services: (plugin: string) => PluginServices;
  /** A run has ended. */
  readonly onDone: (run: number, value: unknown, error: SentError | undefined) => void;
  /** A run waits for the store. Returns what is called when it does not any more. */
  readonly onStoreCall: (run: number) => () => void;
  /** The thread has ended after it had loaded the plugin. */
  readonly onExit: (thread: RunningThread, plugin: string, reason: ThreadEnd) => void;
}

/** One life of the thread of a plugin: it loads the plugin, and then takes messages until it ends. */
export class RunningThread {
  /** What the plugin has registered, once it is loaded. Rejects with `PluginError`; then the thread is to be ended. */
  readonly loaded: Promise<PluginInfo>;
  readonly #worker: Worker;
  readonly #use: string;
  readonly #listeners: ThreadListeners;
  /** Null until the plugin is loaded. */
  #services: PluginServices | null = null;
  /** Called with the next answer to a ping. */
  #onPong: (() => void)[] = [];
  /** Why the worker ends, when it does. */
  #ending: ThreadEnd = 'ended';

  constructor(entry: PluginEntry, publicUrl: string, listeners: ThreadListeners) {
    this.#use = entry.use;
    this.#listeners = listeners;
    this.#worker = new Worker(threadFile(), {
      workerData: { entry, publicUrl } satisfies PluginThreadData,
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.#worker.unref();
    this.loaded = withTimeout(LOAD_MS, this.#load(), () => failLoading(this.#use));
  }

  get isLoaded(): boolean {
    return this.#services !== null;
  }

  post(message: ToPluginThread): void {
    this.#worker.postMessage(message);
  }

  /** Whether the thread answers within so many milliseconds. */
  async answersWithin(ms: number): Promise<boolean> {
    const pong = new Promise<true>((resolve) => {
      this.#onPong.push(() => resolve(true));
      this.post({ type: 'ping' });
    });
    return withTimeout(ms, pong, () => false);
  }

  /** Ends the thread, for a reason that is not its own if one is given. */
  async end(reason?: ThreadEnd): Promise<void> {
    if (reason !== undefined) this.#ending = reason;
    await this.#worker.terminate();
  }

  #load(): Promise<PluginInfo> {
    return new Promise((resolve, reject) => {
      this.#worker.on('message', (message: FromPluginThread) => {
        if (message.type === 'failed')
          reject(Object.assign(new PluginError(this.#use, '', message.options), { message: message.message }));
        if (message.type === 'ready') resolve(this.#ready(message.info));
        if (this.#services !== null) this.#receive(this.#services, message);
      });
      this.#worker.on('error', (error) => {
        if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') this.#ending = 'memory';
        this.#services?.log.error({ reason: firstLine(error) }, 'the thread of a plugin has failed');
        reject(new PluginError(this.#use, `its thread failed: ${firstLine(error)}`));
      });
      this.#worker.once('exit', () => reject(new PluginError(this.#use, 'its thread ended while it loaded')));
    });
  }

  #ready(info: PluginInfo): PluginInfo {
    this.#services = this.#listeners.services(info.name);
    this.#logOutput(this.#services.log);
    this.#worker.on('exit', () => this.#listeners.onExit(this, info.name, this.#ending));
    return info;
  }

  #receive(services: PluginServices, message: FromPluginThread): void {
    if (message.type === 'pong') for (const answered of this.#onPong.splice(0)) answered();
    if (message.type === 'log') services.log[message.level](message.fields, message.message);
    if (message.type === 'done') this.#listeners.onDone(message.id, message.value, message.error);
    if (message.type === 'call') void this.#answer(services, message);
  }

  async #answer(
    services: PluginServices,
    { id, run, method, args }: Extract<FromPluginThread, { type: 'call' }>,
  ): Promise<void> {
    const resume = run !== undefined && isStoreMethod(method) ? this.#listeners.onStoreCall(run) : undefined;
    try {
      const value = await callService(services, method, args).finally(resume);
      this.post({ type: 'result', id, value });
    } catch (error) {
      this.post({ type: 'result', id, error: sentError(error) });
    }
  }

  #logOutput(log: PluginLog): void {
    const { stdout, stderr } = this.#worker;
    const message = 'output of a plugin';
    stdout.setEncoding('utf8').on('data', (output: string) => log.info({ output: output.trimEnd() }, message));
    stderr.setEncoding('utf8').on('data', (output: string) => log.warn({ output: output.trimEnd() }, message));
  }
}

/** The built file of the thread: the TypeScript loader of the tests does not apply to threads on every Node. */
function threadFile(): URL {
  return new URL(
    import.meta.url.endsWith('.ts') ? '../../../dist/threads/plugin.js' : '../threads/plugin.js',
    import.meta.url,
  );
}
