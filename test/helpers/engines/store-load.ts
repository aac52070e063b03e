import type { Test } from 'tap';
import type { PostgresStore } from '../../../src/adapters/postgres/store/store.ts';
import { CollabError } from '../../../src/model/errors.ts';
import { until } from '../cluster.ts';

/** The text of an event with an id. */
export const eventOf = (id: string) => (seq: number) => JSON.stringify({ seq, id });

/** Resolves after a time. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Transactions on some stores, and what their followers receive. */
export class StoreLoad {
  readonly confirmed = new Set<string>();
  readonly refused = new Map<string, string>();
  readonly received = new Map<PostgresStore, { seq: number; id: string }[]>();
  readonly #name: string;
  readonly #writers: Promise<void>[];
  readonly #stop = new AbortController();

  constructor(name: string, stores: readonly PostgresStore[]) {
    this.#name = name;
    for (const store of stores) {
      const received: { seq: number; id: string }[] = [];
      this.received.set(store, received);
      store.follow((stream, event) => {
        if (stream === name && event !== null) received.push(JSON.parse(event.text) as { seq: number; id: string });
      });
    }
    this.#writers = stores.flatMap((store, s) => [0, 1, 2, 3].map((w) => this.#write(store, `${name}/${s}/${w}`)));
  }

  /**
   * Ends the transactions, once more of them were confirmed: they wait for one that a lost connection has left, as all
   * write the same record.
   */
  async stop(): Promise<void> {
    const before = this.confirmed.size;
    await until(() => this.confirmed.size > before + 20);
    this.#stop.abort();
    await Promise.all(this.#writers);
  }

  async #write(store: PostgresStore, prefix: string): Promise<void> {
    for (let i = 0; !this.#stop.signal.aborted; i++) {
      const id = `${prefix}/${i}`;
      try {
        await store.transact(async (tx) => {
          await tx.get(`${this.#name}/all`, id);
          tx.update(`${this.#name}/stats`, 'count', (current) => String(Number(current ?? 0) + 1));
          tx.put(`${this.#name}/all`, id, '1');
          tx.emit(this.#name, eventOf(id));
        });
        this.confirmed.add(id);
      } catch (error) {
        if (!(error instanceof CollabError)) throw error;
        this.refused.set(id, `${error.code}: ${error.message}`);
        await pause(20);
      }
    }
  }

  /** Asserts that each confirmed write is there once, with its event, and that all followers received all of them. */
  async verify(t: Test, store: PostgresStore): Promise<void> {
    const name = this.#name;
    const keys = (await store.range(`${name}/all`)).map(({ key }) => key);
    const events = (await store.events(name, 0, 1_000_000)).map(
      ({ text }) => JSON.parse(text) as { seq: number; id: string },
    );
    const there = new Set(keys);
    t.strictSame(
      [...this.confirmed].filter((id) => !there.has(id)),
      [],
      'what was confirmed is there',
    );
    t.strictSame(events.map(({ id }) => id).sort(), [...keys].sort(), 'each with one event');
    t.equal(await store.get(`${name}/stats`, 'count'), String(keys.length), 'and counted once');
    t.strictSame(
      events.map(({ seq }) => seq),
      keys.map((_, i) => i + 1),
      'positions have no gap',
    );
    for (const [id, refusal] of this.refused) {
      t.match(refusal, /^storage_unavailable: .*(nothing was written|nothing was read|not confirmed)/);
      if (refusal.includes('nothing was') && there.has(id)) t.fail(`${id} was refused, but is there`);
    }
    for (const [follower, received] of this.received) {
      follower.poll();
      await until(() => {
        follower.poll();
        return received.length >= events.length;
      });
      t.strictSame(
        received.map(({ seq }) => seq),
        events.map(({ seq }) => seq),
        'followers get each event once, in order',
      );
    }
  }
}
