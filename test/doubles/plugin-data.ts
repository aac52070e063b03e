import { isDeepStrictEqual } from 'node:util';
import type {
  Data,
  HttpRequest,
  HttpResponse,
  Kv,
  KvEntry,
  Payload,
  PluginEvent,
  PluginNotification,
} from '../../src/plugins/api.ts';
import type { Comment } from '../../src/model/comment.ts';
import type { Thread } from '../../src/model/thread.ts';
import type { User } from '../../src/model/user.ts';

/** The storage of a plugin in one environment, in memory. */
export class MemoryKv implements Kv {
  readonly #entries = new Map<string, Payload>();

  get(key: string): Promise<Payload | undefined> {
    return Promise.resolve(structuredClone(this.#entries.get(key)));
  }

  async put(key: string, value: Payload): Promise<void> {
    await Promise.resolve();
    if (!/^[!-~]{1,200}$/.test(key)) throw new Error(`not a key: ${key}`);
    this.#entries.set(key, structuredClone(value));
  }

  async delete(key: string): Promise<void> {
    await Promise.resolve();
    this.#entries.delete(key);
  }

  async replace(key: string, expected: Payload | undefined, value: Payload): Promise<boolean> {
    await Promise.resolve();
    if (!/^[!-~]{1,200}$/.test(key)) throw new Error(`not a key: ${key}`);
    if (!isDeepStrictEqual(this.#entries.get(key), expected)) return false;
    this.#entries.set(key, structuredClone(value));
    return true;
  }

  list({ prefix = '', after = '', limit = 100 }: { prefix?: string; after?: string; limit?: number } = {}): Promise<
    KvEntry[]
  > {
    const keys = [...this.#entries.keys()].filter((key) => key.startsWith(prefix) && key > after).toSorted();
    return Promise.resolve(
      keys.slice(0, limit).map((key) => ({ key, value: structuredClone(this.#entries.get(key) ?? null) })),
    );
  }
}

/** The data of one environment, set by the test. */
export class MemoryData implements Data {
  readonly threads = new Map<string, Thread>();
  readonly allComments = new Map<string, Comment>();
  readonly users = new Map<string, User>();
  readonly notifications = new Map<string, PluginNotification>();
  readonly log: PluginEvent[] = [];
  /** `user room` of those who are present. */
  readonly present = new Set<string>();
  /** `user channel kind` of the preferences that are off. */
  readonly off = new Set<string>();
  /** The result of `passes`. */
  verdict: (name: string, payload: unknown) => boolean = () => true;

  thread(_: unknown, id: string): Promise<Thread | undefined> {
    return Promise.resolve(this.threads.get(id));
  }

  comments(
    _: unknown,
    threadId: string,
    { limit = 100, latest = false }: { limit?: number; latest?: boolean } = {},
  ): Promise<Comment[]> {
    const all = [...this.allComments.values()].filter((comment) => comment.threadId === threadId);
    return Promise.resolve(latest ? all.slice(-limit) : all.slice(0, limit));
  }

  comment(_: unknown, id: string): Promise<Comment | undefined> {
    return Promise.resolve(this.allComments.get(id));
  }

  user(_: unknown, id: string): Promise<User | undefined> {
    return Promise.resolve(this.users.get(id));
  }

  isPresent(_: unknown, userId: string, roomId: string): Promise<boolean> {
    return Promise.resolve(this.present.has(`${userId} ${roomId}`));
  }

  notification(_: unknown, userId: string, id: string): Promise<PluginNotification | undefined> {
    const found = this.notifications.get(id);
    return Promise.resolve(found?.userId === userId ? found : undefined);
  }

  wantsNotification(_: unknown, userId: string, channel: string, kind: string): Promise<boolean> {
    return Promise.resolve(!this.off.has(`${userId} ${channel} ${kind}`));
  }

  setPreference(_: unknown, userId: string, channel: string, kind: string, enabled: boolean): Promise<void> {
    const key = `${userId} ${channel} ${kind}`;
    if (enabled) this.off.delete(key);
    else this.off.add(key);
    return Promise.resolve();
  }

  events(_: unknown, since: number, limit: number): Promise<PluginEvent[]> {
    return Promise.resolve(this.log.filter(({ seq }) => seq > since).slice(0, limit));
  }

  passes(_: unknown, name: string, payload: unknown): Promise<boolean> {
    return Promise.resolve(this.verdict(name, payload));
  }
}

/**
 * A request without the checks of the real host: any address is allowed. No exchange takes longer than `patienceMs`.
 */
export async function request(url: string, options: HttpRequest = {}, patienceMs = 5_000): Promise<HttpResponse> {
  const { method = 'GET', headers = {}, body, timeoutMs = 15_000 } = options;
  const init = {
    method,
    headers: { ...headers },
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(Math.min(timeoutMs, patienceMs)),
  } as const;
  const answer = await fetch(url, init).catch((error: unknown) => {
    const { name, cause } = error as { name: string; cause?: { message?: string } };
    throw new Error(name === 'TimeoutError' ? 'no answer in time' : (cause?.message ?? String(error)));
  });
  const seconds = answer.headers.get('retry-after');
  return {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    body: new Uint8Array(await answer.arrayBuffer()),
    retryAfterMs: seconds === null ? null : Number(seconds) * 1_000,
  };
}
