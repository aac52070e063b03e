import type { ProcessChannel } from './channel.ts';
import { WorkerExit } from './exit.ts';
import type { DrainReason, ReadyData, Role, StartData } from './messages.ts';

/** What a worker that has failed may take to exit. */
const LAST_MS = 500;

/** How a process ended: its exit code, or the signal that killed it. */
export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A worker process as the operating system, or a test, gives it. */
export interface WorkerProcess {
  readonly pid: number | undefined;
  readonly channel: ProcessChannel;
  readonly ended: Promise<WorkerEnd>;
  /** Ends it at once, without a word (SIGKILL). */
  kill(): void;
}

/** Starts a worker process of a role. */
export type Spawn = (role: Role) => WorkerProcess;

/** Why a worker ended before it was ready, or while it served. */
export interface WorkerFailure {
  readonly reason: string;
  /** The worker has put it into the log by itself. */
  readonly logged: boolean;
  /** A new worker would fail in the same way. */
  readonly permanent: boolean;
}

/** One worker process as the primary sees it, from fork to end. */
export class Worker {
  readonly id: string;
  readonly role: Role;
  readonly channel: ProcessChannel;
  /** Resolves once it serves; never when it ends before that, so watch `ended` too. */
  readonly ready: Promise<ReadyData>;
  readonly ended: Promise<WorkerEnd>;
  readonly #process: WorkerProcess;
  #reported: string | null = null;
  #isPermanent = false;
  #isReady = false;
  #isDraining = false;
  #isHung = false;
  #isKilled = false;

  constructor(process: WorkerProcess, role: Role, start: StartData) {
    this.id = start.workerId;
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

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** It was told to end, so its end is no failure. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Tells it to finish what runs and end. Wait for `ended`. */
  drain(reason: DrainReason): void {
    this.#isDraining = true;
    this.channel.send({ type: 'drain', data: { reason } });
  }

  /** It did not answer and was killed for that. */
  get isHung(): boolean {
    return this.#isHung;
  }

  /** SIGKILL is on its way: one that waits for a disk ends only when that answers. */
  get isKilled(): boolean {
    return this.#isKilled;
  }

  kill(): void {
    this.#isKilled = true;
    this.#process.kill();
  }

  /** Kills it for not answering, which the caller has logged. */
  killHung(reason: string): void {
    this.#isHung = true;
    this.#reported = reason;
    this.kill();
  }

  /** It exits now by itself, unless that hangs: with a commit under way the native part of the store can. */
  #onFailed({ reason, permanent }: { reason: string; permanent: boolean }): void {
    this.#reported = reason;
    this.#isPermanent = permanent;
    const timer = setTimeout(() => this.kill(), LAST_MS);
    void this.ended.then(() => clearTimeout(timer));
  }

  /** What to say of its end. */
  explain({ code, signal }: WorkerEnd): WorkerFailure {
    if (this.#reported !== null) return { reason: this.#reported, logged: true, permanent: this.#isPermanent };
    const how = signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`;
    return { reason: how, logged: code === WorkerExit.logged, permanent: false };
  }
}
