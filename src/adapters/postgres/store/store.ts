import { setTimeout as delay } from 'node:timers/promises';
import { ListenerErrors, Listeners } from '../../../lib/listeners.ts';
import { ValueCache } from '../../../lib/value-cache.ts';
import { CollabError } from '../../../model/errors.ts';
import type {
  Entry,
  EventListener,
  Growth,
  RangeOptions,
  Store,
  StoredEvent,
  Transaction,
} from '../../../ports/store.ts';
import { type Connection, quote } from '../connection.ts';
import { faultOf, openingError } from '../faults.ts';
import { openPool, type Pool } from '../pool.ts';
import { requireNotMoved } from '../transfer/require-not-moved.ts';
import { Committer } from './committer.ts';
import { keptEvents } from './commit-sql.ts';
import { EventFeed, type FeedSource } from './event-feed.ts';
import { FORGET_IDENTITY, type Identity, INCARNATION, prepareDatabase } from './identity.ts';
import {
  eventsQuery,
  partitionsQuery,
  rangeQuery,
  recordQuery,
  recordVersionQuery,
  type StreamBounds,
  streamQuery,
  versionQuery,
} from './queries.ts';
import { type Query, QueryBatch } from './query-batch.ts';
import { commitRefusal } from './refusals.ts';
import { RecordCache, recordName } from './record-cache.ts';
import { PostgresTransaction } from './transaction.ts';
import type { VersionedValue } from './versioned-value.ts';
import { lookQuery } from './look-query.ts';
import { Maintenance, trimStream } from './maintenance.ts';

/** How `openPostgresStore` opens a store. */
export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database?…` (`parseTarget`). */
  readonly url: string;
  /** Maximum number of connections of this process, at least 2. */
  readonly connections: number;
  /** Name of this process, such as `collab web-1`, which operators see in `pg_stat_activity`. */
  readonly name: string;
  /**
   * Called once when the database turns out to be another one than was opened: a standby that was promoted, or a
   * restored backup. The positions of events are those of another epoch then. All reads and writes fail from then on:
   * end this process and open the store again.
   */
  readonly onLost?: ((error: Error) => void) | undefined;
}

const ATTEMPTS = 12;
/** Milliseconds for which a commit is surely remembered by the database (`Maintenance`). */
const REMEMBERED_MS = 20 * 60_000;
const VALUE_CACHE_BYTES = 64 * 1024 * 1024;
/** Partitions whose version is remembered for the cache. */
const MOST_VERSIONS = 50_000;

/**
 * Opens the store in a PostgreSQL database, whose schema `collab` it creates or migrates. Any number of processes of any
 * number of machines may have it open. Throws an `EngineError` for `store.url`.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { url, connections, name } = options;
  const pool = await openPool({ option: 'store.url', url, connections: Math.max(2, connections), name });
  try {
    const store = new PostgresStore(pool, await prepareDatabase(pool), options);
    await requireNotMoved(pool);
    await store.begin();
    return store;
  } catch (error) {
    pool.close();
    throw openingError(pool.target, error);
  }
}

/** The Store on PostgreSQL (docs/decisions/0062-store-on-postgresql.md). */
export class PostgresStore implements Store {
  readonly epoch: string;
  readonly #identity: Identity;
  readonly #options: PostgresStoreOptions;
  readonly #pool: Pool;
  readonly #queries: QueryBatch;
  readonly #committer: Committer;
  readonly #feed: EventFeed;
  readonly #maintenance: Maintenance;
  readonly #faults = new ListenerErrors();
  readonly #flushListeners = new Listeners<[growth: Growth, ms: number]>(this.#faults.report);
  readonly #records = new RecordCache();
  readonly #values = new ValueCache(VALUE_CACHE_BYTES);
  /** Partition -> the version for which the cached values are valid. */
  readonly #versions = new Map<string, string>();
  /** The latest commit that was confirmed. */
  #lastCommit: { readonly id: string; readonly at: number } | undefined;
  #lost: CollabError | undefined;
  #closed: Promise<void> | undefined;

  /** For `openPostgresStore`, which calls `begin` before anything else. */
  constructor(pool: Pool, identity: Identity, options: PostgresStoreOptions) {
    this.epoch = identity.epoch;
    this.#identity = identity;
    this.#options = options;
    this.#pool = pool;
    // A commit always finds a connection.
    this.#queries = new QueryBatch(pool, Math.max(2, options.connections) - 1);
    const requireSame = (incarnation: string): void => this.#requireSame(incarnation);
    this.#committer = new Committer(pool, {
      requireSame,
      committed: ({ id, group, xid }, ms) => {
        this.#lastCommit = { id, at: performance.now() };
        for (const [partition, writes] of group.writes)
          for (const [key, value] of writes)
            this.#records.set(recordName(partition, key), value === null ? null : { value, version: xid });
        this.#feed.committed(group.growth, keptEvents(group));
        this.#flushListeners.call(group.growth, ms);
        for (const seq of group.growth.values()) if (seq === null) this.#maintenance.soon();
      },
    });
    this.#maintenance = new Maintenance(pool, (error) => {
      // Others are done by a later run.
      if (faultOf(error) === 'refused' && this.#closed === undefined) this.#faults.report(error);
    });
    const look: FeedSource['look'] = (since) => this.#queries.ask(lookQuery, since);
    this.#feed = new EventFeed(pool, { requireSame, look, events: (...page) => this.events(...page) }, this.#faults);
  }

  /** Reads from where on followers receive events. */
  async begin(): Promise<void> {
    this.#pool.verifyWith((connection) => this.#verify(connection));
    await this.#feed.begin();
    this.#maintenance.start();
  }

  /** Does what is due in the database now: partitions of events, rows that nobody needs. */
  async maintain(): Promise<void> {
    this.#requireUsable();
    await this.#maintenance.run();
  }

  async get(partition: string, key: string): Promise<string | undefined> {
    return (await this.getVersioned(partition, key))?.value;
  }

  /** As `get`, with what tells one value from another. */
  async getVersioned(partition: string, key: string): Promise<VersionedValue | null> {
    const record = await this.#ask(recordQuery, { partition, key });
    this.#records.set(recordName(partition, key), record);
    return record;
  }

  range(partition: string, options: RangeOptions = {}): Promise<Entry[]> {
    return this.#ask(rangeQuery(partition, options), null);
  }

  async transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      this.#requireUsable();
      // Only the first run may read what is stale.
      const transaction = new PostgresTransaction(this, attempt === 1 ? this.#records : null);
      let result: T;
      try {
        result = await work(transaction);
      } catch (error) {
        if (await this.#wasStale(transaction)) continue;
        throw error;
      }
      if (!transaction.writes) {
        if (await this.#wasStale(transaction)) continue;
        return result;
      }
      this.#requireUsable();
      const outcome = await this.#committer.commit(transaction);
      if (outcome.kind === 'committed') return result;
      if (outcome.kind === 'failed') throw outcome.error;
      if (outcome.stale !== undefined) this.#records.markStale(outcome.stale.name);
      if (attempt > 1 && attempt < ATTEMPTS) await delay(Math.random() * 2 ** attempt);
    }
    throw new CollabError(
      'write_conflict',
      'Too many changes at once to the same records: nothing was written, try again',
    );
  }

  async cached<T>(key: string, partitions: readonly string[], compute: () => Promise<T>): Promise<T> {
    const versions = await Promise.all(partitions.map((partition) => this.#ask(versionQuery, partition)));
    if (this.#versions.size > MOST_VERSIONS) {
      this.#values.clear();
      this.#versions.clear();
    }
    for (const [i, partition] of partitions.entries()) {
      const version = versions[i] ?? '';
      if (this.#versions.get(partition) !== version) this.#values.invalidate(partition);
      this.#versions.set(partition, version);
    }
    return this.#values.get(key, partitions, compute);
  }

  async lastSeq(stream: string): Promise<number> {
    return (await this.#bounds(stream)).last;
  }

  async oldestSeq(stream: string): Promise<number> {
    return (await this.#bounds(stream)).oldest;
  }

  events(stream: string, since: number, limit: number, maxChars = Infinity): Promise<StoredEvent[]> {
    return this.#ask(eventsQuery(stream, since, limit, maxChars), null);
  }

  async trimEvents(stream: string, seq: number): Promise<void> {
    this.#requireUsable();
    try {
      await this.#pool.run(trimStream(stream, seq));
    } catch (error) {
      throw commitRefusal(error, false);
    }
  }

  follow(listener: EventListener): () => void {
    return this.#feed.follow(listener);
  }

  poll(growth: Growth | null = null): void {
    if (this.#closed === undefined && this.#lost === undefined) this.#feed.poll(growth);
  }

  onFlushed(listener: (growth: Growth, ms: number) => void): () => void {
    return this.#flushListeners.add(listener);
  }

  onListenerError(handle: (error: unknown) => void): () => void {
    return this.#faults.add(handle);
  }

  partitions(prefix: string, options: Pick<RangeOptions, 'after' | 'limit'> = {}): Promise<string[]> {
    return this.#ask(partitionsQuery(prefix, options), null);
  }

  async probe(): Promise<void> {
    this.#requireUsable();
    try {
      await this.#pool.run('insert into collab.commits (id) values (gen_random_uuid())');
    } catch (error) {
      throw commitRefusal(error, false);
    }
  }

  async close(): Promise<void> {
    this.#closed ??= this.#close();
    await this.#closed;
  }

  async #close(): Promise<void> {
    await this.#committer.idle();
    await this.#queries.idle();
    await this.#feed.close();
    await this.#maintenance.close();
    this.#pool.close();
  }

  async #ask<K, V>(query: Query<K, V>, wanted: K): Promise<V> {
    this.#requireUsable();
    this.#feed.beforeRead();
    return this.#queries.ask(query, wanted);
  }

  /**
   * Whether what a run of a transaction has read was not current, or not all of it at the same time: two reads are two
   * moments, and what was committed between them may show in one and not in the other.
   */
  async #wasStale({ isSpeculative, reads, assumptions }: PostgresTransaction): Promise<boolean> {
    const all = [...reads, ...assumptions];
    if (!isSpeculative && all.length < 2) return false;
    const versions = await Promise.all(all.map((read) => this.#ask(recordVersionQuery, read)));
    const stale = all.filter(({ version }, i) => versions[i] !== version);
    for (const { name } of stale) this.#records.markStale(name);
    return stale.length > 0;
  }

  #bounds(stream: string): Promise<StreamBounds> {
    return this.#ask(streamQuery, stream);
  }

  #requireUsable(): void {
    if (this.#closed !== undefined) throw new Error('The store is closed');
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** A new connection may lead to another database than the ones before, which may lack what was confirmed. */
  async #verify(connection: Connection): Promise<void> {
    const last = this.#lastCommit;
    const isRecent = last !== undefined && performance.now() - last.at < REMEMBERED_MS;
    const found = isRecent ? `exists (select from collab.commits where id = ${quote(last.id)})` : 'true';
    const [rows] = await connection.run(`select ${INCARNATION}, ${found}`);
    // What a store that is being closed finds must not end those that are open.
    if (this.#closed !== undefined) return;
    const [incarnation, hasLast] = rows?.[0] ?? [];
    if (hasLast !== 't') await connection.run(FORGET_IDENTITY);
    this.#requireSame(hasLast === 't' ? (incarnation ?? '') : 'without the last commit');
  }

  #requireSame(incarnation: string): void {
    if (incarnation === this.#identity.incarnation) return;
    if (this.#lost === undefined) {
      this.#lost = new CollabError(
        'storage_unavailable',
        'The database is another one than before, as after a failover or a restore: the server starts again with it',
      );
      this.#options.onLost?.(this.#lost);
    }
    throw this.#lost;
  }
}
