import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../config/schema.ts';
import type { Clock } from '../lib/clock.ts';
import { randomSecret } from '../lib/ids.ts';
import type { Logger } from '../observability/log.ts';
import type { LockHolders } from '../ports/store-operations.ts';
import { Backoff } from './backoff.ts';
import { StartError } from './exit.ts';
import type { Message, ReadyData, Role } from './messages.ts';
import type { MetricsTotals } from '../observability/metrics-totals.ts';
import { LockWatch } from './lock-watch.ts';
import { Relay } from './relay.ts';
import { Watchdog } from './watchdog.ts';
import { type Spawn, Worker, type WorkerEnd } from './worker.ts';

/**
 * How often in a row a worker may end before it is ready until it counts as failing: a web worker then fails the start.
 */
const START_ATTEMPTS = 3;
/** The report of a background worker without which a server starts. */
const NO_BACKGROUND: ReadyData = { port: 0, core: '', coreReason: '', oldCore: false };
/** Time for a drain beyond `shutdown.drainSeconds` and `shutdown.closeSpreadSeconds`. */
const GRACE_MS = 5_000;
/** Time for a replaced worker to wait for idle connections. */
const LINGER_MS = 15_000;

/** Options of a supervisor. */
export interface SupervisorOptions {
  readonly config: Config;
  readonly port: number;
  readonly webWorkers: number;
  readonly spawn: Spawn;
  readonly clock: Clock;
  readonly log: Logger;
  /** Receives the metrics of the workers; null while metrics are disabled. */
  readonly totals?: MetricsTotals | null;
  /** The processes that hold locks of the store. */
  readonly lockHolders?: LockHolders;
}

/** The slot of one worker: if its worker ends, another one takes its place. */
interface WorkerSlot {
  readonly role: Role;
  readonly backoff: Backoff;
  worker: Worker;
  /** How many workers in a row ended before they were ready. */
  failures: number;
  /** Lets the start go on without this worker, which is started again and again. */
  waive: () => void;
}

/**
 * Runs one background worker and a number of web workers, relays messages between them, and shuts them down in order.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #relay = new Relay();
  readonly #slots: WorkerSlot[] = [];
  readonly #running = new Set<Worker>();
  /** The owners of entries in shared memory that have ended and have not been cleaned up after yet. */
  readonly #uncleaned = new Set<string>();
  /** What the last background worker could not load. */
  #missingPlugins: readonly string[] = [];
  /** Whether the background worker cannot start. */
  #isBackgroundFailing = false;
  readonly #watchdog: Watchdog;
  readonly #lockWatch: LockWatch | null;
  #stopWatchdog: () => void = () => {};
  readonly #stopping = new AbortController();
  readonly #startedAt: number;
  readonly #node = newName('node');
  #started = false;
  #failStart: (error: StartError) => void = () => {};
  #launched = 0;
  #rolling: Promise<void> | null = null;
  #rollAgain = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const { config, log, clock, totals, lockHolders } = options;
    this.#startedAt = clock.now();
    this.#watchdog = new Watchdog({
      timeoutMs: config.workerTimeoutSeconds * 1_000,
      now: () => performance.now(),
      log,
      onHungHook: ({ plugin, hook }) => totals?.count('plugin_hook_errors_total', { plugin, hook }),
    });
    this.#lockWatch =
      lockHolders === undefined
        ? null
        : new LockWatch({
            timeoutMs: config.workerTimeoutSeconds * 1_000,
            now: () => performance.now(),
            log,
            holders: lockHolders,
            onKilled: () => totals?.count('lmdb_ended_holders_total', {}),
          });
  }

  /** Pids of the worker processes by worker id. */
  get pids(): Readonly<Record<string, number | undefined>> {
    return Object.fromEntries([...this.#running].map(({ id, pid }) => [id, pid]));
  }

  get #drainMs(): number {
    const { drainSeconds, closeSpreadSeconds } = this.#options.config.shutdown;
    return (drainSeconds + closeSpreadSeconds) * 1_000;
  }

  /**
   * Starts all workers at once. Resolves once all are ready, with the report of the first web worker. It does not wait
   * for a background worker that has ended three times in a row before it was ready: that is tried again until the
   * server stops.
   *
   * @throws {StartError} if any other worker ended three times in a row before it was ready, or any once for a
   *   permanent reason
   */
  async start(): Promise<ReadyData> {
    const failure = new Promise<never>((_, reject) => (this.#failStart = reject));
    const roles: Role[] = [...Array<Role>(this.#options.webWorkers).fill('web'), 'background'];
    const ready = roles.map((role) => this.#fillSlot(role));
    const stops = [this.#watchdog.start(), this.#lockWatch?.start()];
    this.#stopWatchdog = () => stops.forEach((stop) => stop?.());
    const [first] = await Promise.race([Promise.all(ready), failure]);
    this.#started = true;
    if (first === undefined) throw new RangeError('a cluster has at least one worker');
    return first;
  }

  /**
   * Replaces the web workers one by one; each new worker serves before the old one drains. A call during a restart
   * makes it repeat once. Does nothing before all workers are ready.
   */
  async roll(): Promise<void> {
    if (!this.#started) return;
    this.#rollAgain = this.#rolling !== null;
    this.#rolling ??= this.#rollAll().finally(() => (this.#rolling = null));
    await this.#rolling;
  }

  /** Drains the web workers, then the background worker. Kills those that exceed their time. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    const deadline = performance.now() + this.#drainMs + GRACE_MS;
    await this.#end('web', deadline);
    // The background worker gets at least a second, however long the web workers took.
    await this.#end('background', Math.max(deadline, performance.now() + 1_000));
    this.#stopWatchdog();
  }

  /** Kills every worker. */
  kill(): void {
    this.#stopping.abort();
    this.#stopWatchdog();
    for (const worker of this.#running) worker.kill();
  }

  #fillSlot(role: Role): Promise<ReadyData> {
    return new Promise((resolve) => {
      const slot: WorkerSlot = {
        role,
        backoff: new Backoff(this.#options.clock),
        worker: this.#launch(role),
        failures: 0,
        waive: () => resolve(NO_BACKGROUND),
      };
      this.#slots.push(slot);
      this.#watch(slot, slot.worker, resolve);
    });
  }

  #launch(role: Role): Worker {
    const { config, port, spawn, log } = this.#options;
    const workerId = role === 'web' ? `web-${++this.#launched}` : `background-${++this.#launched}`;
    const start = { config, workerId, owner: newName(workerId), node: this.#node, port, startedAt: this.#startedAt };
    const worker = new Worker(spawn(role), role, start);
    this.#running.add(worker);
    this.#watchdog.watch(worker);
    void worker.ended.then(() => this.#onEnded(worker));
    void worker.ready.then(() => this.#onReady(worker));
    worker.channel.onMessage((message) => {
      if (message.type === 'metrics') this.#options.totals?.add(worker.id, message.data);
      if (message.type === 'missingPlugins') this.#sendMissingPlugins(message.data.uses);
    });
    log.debug({ started: worker.id, workerPid: worker.pid }, 'worker started');
    return worker;
  }

  /** Tells the web workers, which report it. Those that start later get it when they are ready. */
  #sendMissingPlugins(uses: readonly string[]): void {
    this.#missingPlugins = uses;
    this.#tellWebWorkers({ type: 'missingPlugins', data: { uses } });
  }

  /** Tells the web workers, as `#sendMissingPlugins` does. */
  #setBackgroundFailing(isFailing: boolean): void {
    if (this.#isBackgroundFailing === isFailing) return;
    this.#isBackgroundFailing = isFailing;
    this.#tellWebWorkers({ type: 'background', data: { isFailing } });
  }

  #tellWebWorkers(message: Message): void {
    for (const worker of this.#running) if (worker.role === 'web' && worker.isReady) worker.channel.send(message);
  }

  #onReady(worker: Worker): void {
    this.#relay.add(worker.channel);
    if (worker.role === 'web' && this.#missingPlugins.length > 0)
      worker.channel.send({ type: 'missingPlugins', data: { uses: this.#missingPlugins } });
    if (worker.role === 'web' && this.#isBackgroundFailing)
      worker.channel.send({ type: 'background', data: { isFailing: true } });
    if (worker.role === 'background') this.#setBackgroundFailing(false);
    if (worker.role === 'web' || this.#stopping.signal.aborted) return;
    worker.channel.onMessage((message) => {
      if (message.type === 'cleaned') this.#uncleaned.delete(message.data.owner);
    });
    for (const owner of this.#uncleaned) worker.channel.send({ type: 'ended', data: { owner } });
  }

  #onEnded(worker: Worker): void {
    this.#running.delete(worker);
    this.#uncleaned.add(worker.owner);
    this.#options.totals?.dropGauges(worker.id);
    for (const { worker: other } of this.#slots) {
      if (other.role === 'background' && other.isReady)
        other.channel.send({ type: 'ended', data: { owner: worker.owner } });
    }
  }

  /** Calls `onReady` when the worker of a slot is ready, and replaces it if it ends without having been asked to. */
  #watch(slot: WorkerSlot, worker: Worker, onReady: (data: ReadyData) => void): void {
    slot.backoff.started();
    void worker.ready.then((data) => {
      slot.failures = 0;
      onReady(data);
    });
    void worker.ended.then(async (end) => {
      if (this.#stopping.signal.aborted || worker.isDraining) return;
      const wait = slot.backoff.ended();
      this.#report(slot, worker, end, wait);
      await delay(wait, undefined, { signal: this.#stopping.signal }).catch(() => {});
      if (this.#stopping.signal.aborted || slot.worker !== worker) return;
      slot.worker = this.#launch(slot.role);
      this.#watch(slot, slot.worker, onReady);
    });
  }

  #report(slot: WorkerSlot, worker: Worker, end: WorkerEnd, wait: number): void {
    const { reason, logged, exitCode } = worker.explain(end);
    this.#options.totals?.count('worker_restarts_total', { role: slot.role, reason: worker.isHung ? 'hung' : 'ended' });
    if (!worker.isReady) slot.failures++;
    const isFailing = slot.failures >= START_ATTEMPTS;
    if (isFailing && slot.role === 'background') this.#setBackgroundFailing(true);
    if (!this.#started && exitCode !== null) return this.#failStart(new StartError(reason, exitCode));
    if (isFailing && slot.role === 'background') slot.waive();
    else if (!this.#started && isFailing)
      this.#failStart(new StartError(`A ${slot.role} worker cannot start: ${reason}`));
    const facts = { ended: worker.id, workerPid: worker.pid, ...end, reason, replacedInMs: wait };
    if (logged) this.#options.log.warn(facts, 'worker ended and is replaced');
    else this.#options.log.error(facts, 'worker ended unexpectedly and is replaced');
  }

  async #rollAll(): Promise<void> {
    do {
      this.#rollAgain = false;
      this.#options.log.info('replacing the web workers one by one');
      for (const slot of this.#slots) {
        if (slot.role === 'web' && !this.#stopping.signal.aborted && !(await this.#rollSlot(slot))) return;
      }
      if (!this.#stopping.signal.aborted) this.#options.log.info('all web workers replaced');
    } while (this.#rollAgain && !this.#stopping.signal.aborted);
  }

  async #rollSlot(slot: WorkerSlot): Promise<boolean> {
    const next = this.#launch(slot.role);
    const end = await Promise.race([next.ready.then(() => null), next.ended]);
    if (end !== null) {
      if (!this.#stopping.signal.aborted) {
        this.#options.log.error(
          { reason: next.explain(end).reason },
          'a new worker cannot start: the rolling restart is aborted and the remaining old workers keep serving',
        );
      }
      return false;
    }
    const old = slot.worker;
    slot.worker = next;
    this.#watch(slot, next, () => {});
    if (this.#stopping.signal.aborted) return false;
    old.drain('roll');
    await this.#waitOrKill([old], performance.now() + LINGER_MS + 2 * this.#drainMs + GRACE_MS);
    return true;
  }

  async #end(role: Role, deadline: number): Promise<void> {
    const workers = [...this.#running].filter((worker) => worker.role === role);
    for (const worker of workers) worker.drain('stop');
    await this.#waitOrKill(workers, deadline);
  }

  /** Waits for the workers to end, and kills those that are still running at the deadline. */
  async #waitOrKill(workers: readonly Worker[], deadline: number): Promise<void> {
    const timer = setTimeout(() => {
      for (const worker of workers) {
        if (!this.#running.has(worker)) continue;
        this.#options.log.warn(
          { killed: worker.id, workerPid: worker.pid },
          'worker did not end in time and is killed (SIGKILL)',
        );
        worker.kill();
      }
    }, deadline - performance.now());
    await Promise.all(workers.map(({ ended }) => ended));
    clearTimeout(timer);
  }
}

/**
 * Names this server, or the entries of a worker in shared memory. The random part makes it unique over machines and
 * restarts; the others tell a reader whose they are.
 */
function newName(workerId: string): string {
  return `${hostname().replaceAll(/[^\x21-\x7e]/g, '-')}/${workerId}/${randomSecret(12)}`;
}
