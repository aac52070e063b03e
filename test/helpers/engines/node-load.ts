import { setTimeout as delay } from 'node:timers/promises';
import type { Test } from 'tap';
import { until } from '../cluster.ts';
import { type Answer, askOnce } from '../http-client.ts';
import type { Receiver } from '../receiver.ts';
import { ResumingClient } from '../resuming-client.ts';
import { userToken } from '../user-token.ts';
import type { Nodes } from './nodes.ts';

const ROOMS = 4;
const THREADS = 8;
const WRITERS = 4;
const CLIENTS = 4;
const REQUEST_MS = 30_000;
/** So that a busy machine has time for what each comment causes. */
const PAUSE_MS = 50;

/** A comment that was answered with 201. */
interface Answered {
  readonly thread: string;
  readonly id: string;
  readonly body: string;
}

interface VisibleEvent {
  readonly seq: number;
  readonly type: string;
  readonly eventId: string;
}

/**
 * Writers and clients that take another node each time: comments that mention `bob`, and sockets that resume where they
 * ended, on whichever node.
 */
export class NodeLoad {
  readonly answered: Answered[] = [];
  /** Answers that are neither a success nor say that the service cannot write now. */
  readonly strange: string[] = [];
  /** Answers that say that the service cannot write now. */
  refused = 0;
  readonly clients: ResumingClient[] = [];
  /** Numbers of nodes that get no new requests, as from a load balancer that has left them out. */
  readonly avoided = new Set<number>();
  readonly #nodes: Nodes;
  /** Ends the writers. */
  readonly #ended = new AbortController();
  #writers: Promise<void>[] = [];

  private constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  /** Makes the users, rooms and threads, connects the clients and starts to write. It ends with the test. */
  static async start(t: Test, nodes: Nodes): Promise<NodeLoad> {
    const load = new NodeLoad(nodes);
    for (const user of ['ann', 'bob']) await load.ask('PUT', `/users/${user}`, { name: user });
    const threads: string[] = [];
    for (let n = 0; n < THREADS; n++) {
      const { thread } = await load.ask<{ thread: { id: string } }>('POST', `/rooms/room-${n % ROOMS}/threads`, {
        userId: 'ann',
        body: 'first',
      });
      threads.push(thread.id);
    }
    const headers = {
      'X-Service-Key': nodes.keys.publishableKey,
      'X-Service-Token': await userToken(nodes.keys, 'ann'),
    };
    for (let n = 0; n < CLIENTS; n++) {
      const url = (): string => `${load.#anyUrl().replace('http', 'ws')}/api/v1/ws`;
      load.clients.push(new ResumingClient({ url, headers }));
    }
    await Promise.all(load.clients.map((client) => client.start()));
    load.#writers = Array.from({ length: WRITERS }, (_, writer) => load.#write(writer, threads));
    t.teardown(() => load.stop());
    return load;
  }

  /** Calls the API of any node with the secret key. Throws unless it succeeds. */
  async ask<T>(method: string, path: string, body?: object): Promise<T> {
    const { status, text } = await this.#send(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return JSON.parse(text) as T;
  }

  /** Resolves once so many further comments were answered: work is under way everywhere. */
  async goesOn(count = 24): Promise<void> {
    const before = this.answered.length;
    await until(() => this.answered.length >= before + count, 120_000);
  }

  /** Ends the writers. */
  async stop(): Promise<void> {
    this.#ended.abort();
    await Promise.all(this.#writers);
    await Promise.all(this.clients.map((client) => client.stop()));
  }

  /**
   * Ends the load, and asserts that nothing was lost or doubled: every answered comment is there, `bob` has one
   * notification of each, every client has every event once and in order, and the receiver of the webhook has them all.
   */
  async verify(t: Test, receiver?: Receiver): Promise<void> {
    this.#ended.abort();
    await Promise.all(this.#writers);
    t.same(this.strange, [], 'a request is answered with 201, refused as unavailable, or cut off');

    const found = new Map<string, string>();
    for (const thread of new Set(this.answered.map((one) => one.thread)))
      for (const { id, body } of await this.#all<Answered>(`/threads/${thread}/comments?limit=100`))
        found.set(id, body);
    const lost = this.answered.filter(({ id, body }) => found.get(id) !== body);
    t.same(lost, [], `all ${this.answered.length} answered comments are there`);

    const seq = (await this.#events()).at(-1)?.seq ?? 0;
    await Promise.all(this.clients.map((client) => client.reach(seq, 120_000)));
    await Promise.all(this.clients.map((client) => client.stop()));
    const visible = (await this.#events()).map((event) => event.seq);
    for (const client of this.clients) {
      t.equal(client.notRecovered, 0, `each of ${client.connects - 1} resumes went on where it had ended`);
      const [first = 0] = client.seqs;
      const last = client.seqs.at(-1) ?? 0;
      const wanted = visible.filter((one) => one >= first && one <= last);
      t.same(client.seqs, wanted, `of ${wanted.length} events none is lost or doubled, and all are in order`);
      t.ok(last >= seq, 'up to the last');
    }

    await this.#verifyNotifications(t, found);
    if (receiver !== undefined) await this.#verifyWebhooks(t, receiver);
  }

  /** A comment that was not answered may be there too, and has its notification then. */
  async #verifyNotifications(t: Test, found: ReadonlyMap<string, string>): Promise<void> {
    const mentions = new Map<string, number>();
    const count = async (): Promise<number> => {
      mentions.clear();
      for (const { commentId } of await this.#all<{ commentId: string }>('/users/bob/notifications?limit=100'))
        mentions.set(commentId, (mentions.get(commentId) ?? 0) + 1);
      return mentions.size;
    };
    const wanted = [...found].filter(([, body]) => body !== 'first').map(([id]) => id);
    await until(async () => (await count()) >= wanted.length, 120_000);
    t.same(
      wanted.filter((id) => mentions.get(id) !== 1),
      [],
      `each of ${wanted.length} comments has one notification`,
    );
  }

  async #verifyWebhooks(t: Test, receiver: Receiver): Promise<void> {
    const wanted = (await this.#events())
      .filter(({ type }) => type === 'comment.created')
      .map(({ eventId }) => eventId);
    const missing = (): string[] => {
      const ids = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
      return wanted.filter((id) => !ids.has(id));
    };
    await until(() => missing().length === 0, 120_000).catch(() => {});
    t.same(missing(), [], `each of ${wanted.length} events was delivered`);
  }

  /** The events that every user of the environment sees: those of notifications are for their users only. */
  async #events(): Promise<VisibleEvent[]> {
    const events = await this.#all<VisibleEvent>('/events?limit=1000', 'since');
    return events.filter(({ type }) => !type.startsWith('notification.'));
  }

  async #write(writer: number, threads: readonly string[]): Promise<void> {
    for (let n = 0; !this.#ended.signal.aborted; n++) {
      const thread = threads[(n + writer) % threads.length] ?? '';
      const body = `writer ${writer}, comment ${n}`;
      const answer = await this.#send('POST', `/threads/${thread}/comments`, {
        userId: 'ann',
        body,
        mentions: ['bob'],
      }).catch(() => null);
      if (answer?.status === 201)
        this.answered.push({ thread, id: (JSON.parse(answer.text) as { comment: { id: string } }).comment.id, body });
      else if (answer === null) await delay(20);
      else if (answer.status === 503) {
        this.refused++;
        await delay(50);
      } else this.strange.push(`${answer.status} ${answer.text}`);
      await delay(PAUSE_MS);
    }
  }

  #send(method: string, path: string, body?: object): Promise<Answer> {
    return askOnce(method, `${this.#anyUrl()}/api/v1${path}`, {
      headers: { Authorization: `Bearer ${this.#nodes.keys.secretKey}`, 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
  }

  #anyUrl(): string {
    const nodes = this.#nodes.all.filter((_, number) => !this.avoided.has(number));
    return nodes[Math.floor(Math.random() * nodes.length)]?.url ?? '';
  }

  /** Reads a list to its end, by cursor, or by position. */
  async #all<T>(path: string, by: 'cursor' | 'since' = 'cursor'): Promise<T[]> {
    const all: T[] = [];
    for (let next = ''; ;) {
      const page = await this.ask<{ items: T[]; nextCursor?: string | null }>('GET', `${path}${next}`);
      all.push(...page.items);
      if (by === 'since') {
        if (page.items.length === 0) return all;
        next = `&since=${(page.items.at(-1) as { seq: number }).seq}`;
      } else {
        if (page.nextCursor === null || page.nextCursor === undefined) return all;
        next = `&cursor=${page.nextCursor}`;
      }
    }
  }
}
