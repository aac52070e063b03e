import type { ProcessChannel } from './channel.ts';
import { WorkerExit } from './exit.ts';
import type { DrainReason, ReadyData, Role, StartData } from './messages.ts';

/** How long a failed worker may take to exit. */
const EXIT_MS = 500;

/** How a process ends for which the disk fails while LMDB opens, reads or writes a file (decision 63). */
const CRASH_SIGNALS: ReadonlySet<string> = new Set(['SIGSEGV', 'SIGBUS', 'SIGABRT']);

/** How a process ended: with an exit code, or by a signal. */
export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A worker process, real or of a test. */
export interface WorkerProcess {
  readonly pid: number | undefined;
  readonly channel: ProcessChannel;
  readonly ended: Promise<WorkerEnd>;
  /** Sends SIGKILL. */
  kill(): void;
  /** Sends `WAKE_SIGNAL`. */
  wake(): void;
}

/** Starts a worker process of a role. */
export type Spawn = (role: Role) => WorkerProcess;

/** Why a worker ended. */
export interface WorkerFailure {
  readonly reason: string;
  /** The worker has logged the reason itself. */
  readonly logged: boolean;
  /** The exit code of a start that fails for it, because a new worker would fail in the same way; null if it may not. */
  readonly exitCode: number | null;
}

/** One worker process as the primary sees it, from fork to end. */
export class Worker {
  readonly id: string;
  /** The owner of its entries in shared memory. */
  readonly owner: string;
  readonly role: Role;
  readonly channel: ProcessChannel;
  /** Resolves once the worker is ready. Stays pending if it ends before that, so watch `ended` too. */
  readonly ready: Promise<ReadyData>;
  readonly ended: Promise<WorkerEnd>;
  readonly #process: WorkerProcess;
  #reported: string | null = null;
  #exitCode: number | null = null;
  #isReady = false;
  #isDraining = false;
  #isHung = false;
  #isKilled = false;

  constructor(process: WorkerProcess, role: Role, start: StartData) {
    this.id = start.workerId;
    this.owner = start.owner;
    this.role = role;
    this.#process = process;
    this.channel = process.channel;
    this.ended = process.ended;
    this.ready = new Promise((resolve) => {
      process.channel.onMessage((message) => {
        if (message.type === 'failed') this.#onFailed(message.data);
        if (message.type !== 'ready') return;
        this.#isReady = true;
        resolve(message.data);
      });
    });
    process.channel.send({ type: 'start', data: start });
  }

  /** The process id; undefined if the fork failed. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Whether it has reported that it is ready. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether it was asked to drain, so that its end is no failure. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Asks it to finish the work in progress and end. Wait for `ended`. */
  drain(reason: DrainReason): void {
    this.#isDraining = true;
    this.channel.send({ type: 'drain', data: { reason } });
  }

  /** Whether it was killed because it did not answer. */
  get isHung(): boolean {
    return this.#isHung;
  }

  /** Whether SIGKILL was sent. A process that waits for a disk ends only when the disk answers. */
  get isKilled(): boolean {
    return this.#isKilled;
  }

  /** Sends SIGKILL. */
  kill(): void {
    this.#isKilled = true;
    this.#process.kill();
  }

  /** Makes its main thread look again at a lock that it may wait for (decision 84). No effect on a worker that runs. */
  wake(): void {
    this.#process.wake();
  }

  /** Kills it because it does not answer. The caller has logged that. */
  killHung(reason: string): void {
    this.#isHung = true;
    this.#reported = reason;
    this.kill();
  }

  /**
   * It now exits by itself. That can hang in the native part of the store if a commit is in progress, hence the timer.
   */
  #onFailed({ reason, exitCode }: { reason: string; exitCode: number | null }): void {
    this.#reported = reason;
    this.#exitCode = exitCode;
    const timer = setTimeout(() => this.kill(), EXIT_MS);
    void this.ended.then(() => clearTimeout(timer));
  }

  /** Explains its end for the log. */
  explain({ code, signal }: WorkerEnd): WorkerFailure {
    if (this.#reported !== null) return { reason: this.#reported, logged: true, exitCode: this.#exitCode };
    const hint = CRASH_SIGNALS.has(signal ?? '')
      ? ' (often a disk that fails or is full: see the kernel log, dmesg)'
      : '';
    const how = signal === null ? `it exited with code ${code}` : `it was killed by ${signal}${hint}`;
    return { reason: how, logged: code === WorkerExit.logged, exitCode: null };
  }
}
