import type { Budget, NewSharedRecord, RateLimitResult, Shared, SharedRecord } from '../../ports/shared.ts';
import { spendFrom } from '../memory/budget.ts';
import { Calls } from './calls.ts';
import type { Link } from './link.ts';

/** What a call of the script is about: a kind of keys, before the key. */
type Kind = 'h' | 'b' | 'c' | 'r';

/**
 * Shared memory in a Redis or Valkey. Each call is atomic there, at the time of the server. While it cannot be reached,
 * calls reject with a store error: at once, or within 4 s while that is found out.
 */
export class RedisShared implements Shared {
  readonly #link: Link;
  readonly #tag: string;
  readonly #calls: Calls;

  /**
   * @param time the time in µs to use in place of that of the server, or ''
   * @param onForeign called with keys that had values of another program and were removed
   */
  constructor(
    link: Link,
    tag: string,
    time: () => string = () => '',
    onForeign: (keys: readonly string[]) => void = () => {},
  ) {
    this.#link = link;
    this.#tag = tag;
    this.#calls = new Calls(link, tag, time, onForeign);
  }

  async hit(key: string, limit: number, windowMs: number): Promise<RateLimitResult> {
    const answer = await this.#call(`h:${key}`, 'hit', limit, windowMs * 1_000);
    const [allowed, count, resetUs] = answer;
    return {
      allowed: allowed === '1',
      remaining: Math.max(0, limit - Number(count)),
      resetMs: Number(resetUs) / 1_000,
    };
  }

  async spend(key: string, budget: Budget): Promise<RateLimitResult> {
    const { amount, limit, windowMs, overdraw = false } = budget;
    const [missingMs] = await this.#call(`b:${key}`, 'spend', amount, limit, windowMs, overdraw ? 1 : 0);
    // The script has computed the same from the same numbers.
    return spendFrom(Number(missingMs), budget, 0).window;
  }

  async beginLease(owner: string): Promise<void> {
    await this.#call(undefined, 'begin', owner);
  }

  async renewLease(owner: string): Promise<boolean> {
    return (await this.#call(undefined, 'renew', owner))[0] === '1';
  }

  async endLease(owner: string, keepRecordsMs: number): Promise<void> {
    await this.#call(undefined, 'end', owner, keepRecordsMs);
  }

  async count(key: string, owner: string, delta: number): Promise<number> {
    return Number((await this.#call(`c:${key}`, 'count', owner, delta))[0]);
  }

  async total(key: string): Promise<number> {
    return Number((await this.#call(`c:${key}`, 'total'))[0]);
  }

  async put({ key, name, owner, text, expiresInMs }: NewSharedRecord): Promise<void> {
    await this.#call(`r:${key}`, 'put', name, owner, text, expiresInMs ?? '');
  }

  async delete(key: string, name: string): Promise<void> {
    await this.#call(`r:${key}`, 'delete', name);
  }

  async list(key: string): Promise<SharedRecord[]> {
    const records = recordsOf(key, await this.#call(`r:${key}`, 'list'));
    return records.sort((one, other) => (one.name < other.name ? -1 : 1));
  }

  async get(key: string, name: string): Promise<SharedRecord | undefined> {
    return recordsOf(key, await this.#call(`r:${key}`, 'get', name))[0];
  }

  async sweep(idleMs: number): Promise<void> {
    const kindAt = this.#tag.length + 2;
    let cursor: string | undefined = '0';
    do [cursor] = await this.#call(undefined, 'sweep', cursor, `${this.#tag}:[hbcr]:*`, kindAt, idleMs);
    while (cursor !== undefined && cursor !== '0');
  }

  async maintain(): Promise<void> {
    // Processes hold nothing in the server but what their leases are for.
  }

  async close(): Promise<void> {
    await this.#calls.settled();
    this.#link.close();
  }

  #call(key: `${Kind}:${string}` | undefined, ...args: readonly (string | number)[]): Promise<readonly string[]> {
    return new Promise((resolve, reject) => this.#calls.add({ key, args: args.map(String), resolve, reject }));
  }
}

/** Reads the answer of the script: for each record its name, itself, its time left in µs or '', and '1' for nobody's. */
function recordsOf(key: string, answer: readonly string[]): SharedRecord[] {
  const records: SharedRecord[] = [];
  for (let i = 0; i + 3 < answer.length; i += 4) {
    const [name = '', stored = '', leftUs = '', nobody] = answer.slice(i, i + 4);
    const [, putAtUs, owner = '', text = ''] = /^\d+ (\d+) \d+ ([^ \t-\r]*) ([^]*)$/.exec(stored) ?? [];
    const expiresInMs = leftUs === '' ? null : Number(leftUs) / 1_000;
    records.push({ key, name, owner: nobody === '1' ? '' : owner, text, putAt: Number(putAtUs) / 1_000, expiresInMs });
  }
  return records;
}
