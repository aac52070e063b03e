import type * as Library from '@redis/client';
import { withTimeout } from '../../lib/concurrency/deadline.ts';
import { importModule } from '../../lib/process/import-module.ts';
import { messageOf } from '../../lib/thrown.ts';
import { ConnectionLost, isLoss } from './faults.ts';
import { type Endpoint, refusal, type Target } from './target.ts';

/** Milliseconds until a connection must be made and greeted. */
export const CONNECT_MS = 5_000;
/** Milliseconds without traffic after which the system looks whether the other end is still there. */
const KEEP_ALIVE_MS = 10_000;

/** What a server says about itself. */
interface Greeting {
  readonly server: string;
  readonly version: string;
  /** `standalone`, `cluster` or `sentinel`. */
  readonly mode: string;
  /** `master` or `replica`. */
  readonly role: string;
}

type Login = Pick<Target, 'username' | 'password' | 'database' | 'tls' | 'answerMs'>;

function newClient(library: typeof Library, { host, port }: Endpoint, { tls, username, password, database }: Login) {
  const socket = {
    host,
    port,
    // Before `open` gives up: the library would go on to connect a client that was destroyed meanwhile.
    connectTimeout: 0.9 * CONNECT_MS,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    // Another connection is another client: so no command is ever sent twice, or to another server than the one before.
    reconnectStrategy: false as const,
  };
  return library.createClient({
    RESP: 3,
    name: 'collab',
    socket: tls === false ? socket : { ...socket, ...tls, tls: true as const },
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    database,
    disableOfflineQueue: true,
    disableClientInfo: true,
    maintNotifications: 'disabled',
    // A timer of each command would cost more than the command.
    commandOptions: { timeout: 0 },
  });
}

/** One connection to one server. When it is lost, it stays lost. */
export class Connection {
  readonly endpoint: Endpoint;
  readonly #client: ReturnType<typeof newClient>;
  readonly #answerMs: number;
  #sharded = false;
  #lost: ConnectionLost | undefined;
  #ended: (error: ConnectionLost) => void = () => {};

  private constructor(client: ReturnType<typeof newClient>, endpoint: Endpoint, answerMs: number) {
    this.#client = client;
    this.endpoint = endpoint;
    this.#answerMs = answerMs;
    client.on('error', (error) => this.end(error));
    client.on('end', () => this.end(new Error('the connection was closed')));
    // A slot of a cluster has moved to another node.
    client.on('sharded-channel-moved', () => this.end(new Error('the slot has moved')));
  }

  /** Connects within `CONNECT_MS`. Rejects with what the server or the system says. */
  static async open(endpoint: Endpoint, login: Login): Promise<Connection> {
    const connection = new Connection(newClient(await load(), endpoint, login), endpoint, login.answerMs);
    try {
      await withTimeout(CONNECT_MS, connection.#client.connect(), () => {
        throw new Error(`no answer for ${CONNECT_MS / 1_000} s`);
      });
      return connection;
    } catch (error) {
      connection.end(error);
      throw error instanceof Error && 'code' in error ? new ConnectionLost(messageOf(error), error) : error;
    }
  }

  /** What the server says about itself. */
  async greeting(): Promise<Greeting> {
    const { server, version, mode, role } = (await this.send(['HELLO'])) as Greeting;
    this.#sharded = mode === 'cluster';
    return { server, version, mode, role };
  }

  /** The answer to one command. Rejects with the error of the server or `ConnectionLost`. */
  async send(command: readonly string[]): Promise<unknown> {
    const [answer] = await this.exchange([command]);
    if (answer instanceof Error) throw answer;
    return answer;
  }

  /**
   * The answers to commands, sent together; of one that the server has refused, the error. Rejects with `ConnectionLost`
   * if the connection is lost, also when there is no answer for `answerMs`, or one that says that this server does not
   * do its part now. Which commands took effect is unknown then.
   */
  async exchange(commands: readonly (readonly string[])[]): Promise<unknown[]> {
    const sent = Promise.all(commands.map((command) => this.#client.sendCommand(command).catch((error) => error)));
    const answers = await this.#answered(sent);
    const loss = answers.find((answer) => answer instanceof Error && isLoss(answer));
    if (loss !== undefined) this.end(loss);
    if (this.#lost !== undefined) throw this.#lost;
    return answers;
  }

  /** Publishes on channels, in the order of `messages`. Returns how many connections to the server heard each. */
  async publish(messages: readonly (readonly [channel: string, message: string])[]): Promise<number> {
    const command = this.#sharded ? 'SPUBLISH' : 'PUBLISH';
    const answers = await this.exchange(messages.map(([channel, message]) => [command, channel, message]));
    const refused = answers.find((answer) => answer instanceof Error);
    if (refused !== undefined) throw refused;
    return Number(answers[0] ?? 0);
  }

  /** Calls `listener` with what is published on the channels from when the promise resolves on. */
  async subscribe(channels: readonly string[], listener: (message: string, channel: string) => void): Promise<void> {
    const names = [...channels];
    await this.#answered(
      this.#sharded ? this.#client.sSubscribe(names, listener) : this.#client.subscribe(names, listener),
    );
  }

  /** Ends what `subscribe` has begun with the same listener. */
  async unsubscribe(channels: readonly string[], listener: (message: string, channel: string) => void): Promise<void> {
    const names = [...channels];
    await this.#answered(
      this.#sharded ? this.#client.sUnsubscribe(names, listener) : this.#client.unsubscribe(names, listener),
    );
  }

  /** Calls `listener`, instead of one before, when the connection is lost, also by `end`. */
  onEnd(listener: (error: ConnectionLost) => void): void {
    this.#ended = listener;
    if (this.#lost !== undefined) listener(this.#lost);
  }

  /** Closes the connection: what was sent and not answered fails with `ConnectionLost`. No effect if it is lost. */
  end(error: unknown): void {
    if (this.#lost !== undefined) return;
    this.#lost = new ConnectionLost(messageOf(error), error);
    this.#client.destroy();
    this.#ended(this.#lost);
  }

  async #answered<T>(work: Promise<T>): Promise<T> {
    if (this.#lost !== undefined) throw this.#lost;
    let isAnswered = false;
    const timer = setTimeout(() => {
      // A process that was stopped finds its timers before the answers that have arrived meanwhile.
      setImmediate(() => {
        if (!isAnswered) this.end(new Error(`no answer for ${this.#answerMs / 1_000} s`));
      });
    }, this.#answerMs);
    try {
      return await work;
    } finally {
      isAnswered = true;
      clearTimeout(timer);
    }
  }
}

async function load(): Promise<typeof Library> {
  try {
    return (await importModule('@redis/client')) as typeof Library;
  } catch (error) {
    throw refusal('the client for Redis is not installed: run `npm install @redis/client@6`', error);
  }
}
