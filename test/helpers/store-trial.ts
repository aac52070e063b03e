import { mkdirSync, rmSync } from 'node:fs';
import { copyStore, inspectStore, renewEpoch } from '../../src/adapters/lmdb/backup.ts';
import type { StoreBounds } from '../../src/adapters/lmdb/bounds.ts';
import { compactStore } from '../../src/adapters/lmdb/compaction.ts';
import {
  checkpointPosition,
  checkpointText,
  openDatabase,
  recordCheckpoint,
} from '../../src/adapters/lmdb/env/database.ts';
import { type LmdbStore, openLmdbStore } from '../../src/adapters/lmdb/store.ts';
import type { RangeOptions, Transaction } from '../../src/ports/store.ts';
import { MemoryDatabase, type Emission, type Operation } from '../doubles/memory-database.ts';
import type { Random } from '../fuzz/random.ts';

/** How often a trial did what a store does rarely. */
export interface TrialCounts {
  commits: number;
  /** Passes over the ring. */
  wraps: number;
  checkpoints: number;
  rotations: number;
  reopenings: number;
  trims: number;
  ends: number;
  tooLarge: number;
  compactions: number;
  /** Copies with a new epoch, as a restore makes them. */
  copies: number;
}

/** What a transaction writes, as the double takes it. */
interface Filled {
  readonly operations: Operation[];
  readonly emissions: Emission[];
}

/** One of the stores of a trial, with what its follower has received. */
interface View {
  store: LmdbStore;
  /** Stream -> position of the last event received, or of the last one when the store was opened. */
  readonly received: Map<string, number>;
  readonly ended: Set<string>;
}

const PARTITIONS = ['p', 'p/1', 'p/2', 'q'];
const KEYS = ['a', 'b', 'c/1', 'c/2', 'c/3', 'd'];
const PREFIXES = ['', 'c', 'c/', 'x'];

/** Bounds with which a trial reaches within a hundred steps what a server reaches within a week. */
export function smallBounds(random: Random): Partial<StoreBounds> {
  return {
    rotateBytes: random.pick([50_000, 200_000, 10_000_000]),
    rotationCheckMs: 0,
    checkpointBytes: random.pick([8_000, 40_000, 10_000_000]),
    checkpointWaitMs: 0,
    ringRecords: random.pick([12, 20, 33]),
    groupLength: random.pick([100, 2_000, 20_000]),
    chunkEvents: random.pick([1, 2, 5]),
    chunkBytes: random.pick([1, 200, 5_000]),
    reloadEvents: random.pick([1, 3]),
    arenaBlockBytes: random.pick([100, 4_000]),
    tableCacheEntries: random.pick([1, 5]),
    valueCacheBytes: random.pick([1, 500]),
  };
}

/**
 * Does at random what a server does to its store, by several stores on one folder, and compares each of them with a
 * memory double. Throws at the first difference.
 */
export class StoreTrial {
  readonly counts: TrialCounts = {
    commits: 0,
    wraps: 0,
    checkpoints: 0,
    rotations: 0,
    reopenings: 0,
    trims: 0,
    ends: 0,
    tooLarge: 0,
    compactions: 0,
    copies: 0,
  };
  readonly #random: Random;
  readonly #path: string;
  readonly #bounds: Partial<StoreBounds>;
  readonly #model = new MemoryDatabase();
  /** Stream -> position up to which it was trimmed. */
  readonly #trimmed = new Map<string, number>();
  readonly #views: View[] = [];
  #streams = ['s0.0', 's1.0', 's2.0'];
  #next = 1;
  #busy = 0;

  constructor(path: string, random: Random, bounds: Partial<StoreBounds>) {
    this.#path = path;
    this.#random = random;
    this.#bounds = bounds;
  }

  /** Opens the stores, does the steps and closes the stores again. */
  async run(steps: number, stores = 2): Promise<void> {
    const start = this.#random.pick([0, 2 ** 32 - 40, 2 ** 40]);
    await this.#createAt(start);
    try {
      for (let i = 0; i < stores; i++) this.#views.push(await this.#open(this.#path));
      for (let step = 0; step < steps; step++) await this.#step();
      for (const view of this.#views) {
        view.store.poll();
        await this.#compareAll(view);
        for await (const { name, fault } of view.store.faults()) throw new Error(`${name} ${fault}`);
      }
    } finally {
      await Promise.all(this.#views.map(({ store }) => store.close()));
    }
    await this.#countPasses(start);
  }

  async #countPasses(start: number): Promise<void> {
    const database = await openDatabase(this.#path, { bounds: this.#bounds });
    this.counts.rotations = database.generation;
    this.counts.wraps = Math.floor(
      (checkpointPosition(checkpointText(database)) - start) / (this.#bounds.ringRecords ?? 1),
    );
    await Promise.all([database.log.close(), database.root.close()]);
  }

  /** Makes a store whose log begins at a position. */
  async #createAt(position: number): Promise<void> {
    const database = await openDatabase(this.#path, { bounds: this.#bounds });
    await database.root.transaction(() => recordCheckpoint(database, position));
    await Promise.all([database.log.close(), database.root.close()]);
  }

  async #open(path: string): Promise<View> {
    const store = await openLmdbStore({ path, minFreeBytes: 0, bounds: this.#bounds });
    const known = [...this.#streams, 'many'].map((stream) => [stream, this.#model.lastSeq(stream)] as const);
    const view: View = { store, received: new Map(known), ended: new Set() };
    store.onListenerError((error) => {
      throw error;
    });
    store.follow((stream, event) => {
      if (event === null) return void view.ended.add(stream);
      const expected = (view.received.get(stream) ?? 0) + 1;
      // What was deleted before the store looked is skipped.
      const last = Math.max(expected, (this.#trimmed.get(stream) ?? 0) + 1);
      if (event.seq < expected || event.seq > last || (JSON.parse(event.text) as { seq: number }).seq !== event.seq)
        throw new Error(`a follower got ${stream} ${event.seq} in place of ${expected}`);
      view.received.set(stream, event.seq);
    });
    return view;
  }

  async #step(): Promise<void> {
    const random = this.#random;
    // Most often one store does everything, so that the others are overtaken by the ring.
    if (random.chance(0.05)) this.#busy = random.below(this.#views.length);
    const at = random.chance(0.9) ? this.#busy : random.below(this.#views.length);
    const view = this.#views[at] as View;
    const { store } = view;
    const dice = random.below(100);
    if (dice < 52) await this.#commit(store);
    else if (dice < 55) await this.#commitMany();
    else if (dice < 58) await this.#commitTooLarge(store);
    else if (dice < 62) await this.#trim(store);
    else if (dice < 68) await this.#checkpoint(store);
    else if (dice < 76) await store.maintain();
    else if (dice < 79) store.poll();
    else if (dice < 80) store.releaseSnapshot();
    else if (dice < 83) await this.#reopen(at);
    else if (dice < 84) await (random.chance(0.5) ? this.#compact() : this.#compareCopy());
    else if (dice < 96) await this.#compareSome(view);
    else await this.#compareAll(view);
  }

  /** Fills `tx`; returns the same for the double. */
  #fill(tx: Transaction): Filled {
    const random = this.#random;
    const operations: Operation[] = [];
    const emissions: Emission[] = [];
    for (let left = random.below(4); left > 0; left--) {
      const [partition, key] = [random.pick(PARTITIONS), random.pick(KEYS)];
      const text = this.#text();
      const kind = random.below(3);
      const change =
        kind === 0
          ? () => text
          : kind === 1
            ? () => undefined
            : (current: string | undefined) => `${(current ?? '').slice(-20)}${text.slice(-20)}`;
      if (kind === 0) tx.put(partition, key, text);
      else if (kind === 1) tx.delete(partition, key);
      else tx.update(partition, key, change);
      operations.push({ partition, key, change });
    }
    for (let left = random.below(3); left > 0; left--) {
      const stream = random.pick(this.#streams);
      const text = this.#text();
      const render = (seq: number): string => JSON.stringify({ seq, text });
      tx.emit(stream, render);
      emissions.push({ stream, render });
    }
    if (random.chance(0.03)) {
      const ending = random.below(this.#streams.length);
      const stream = this.#streams[ending] as string;
      tx.endStream(stream);
      emissions.push({ stream, render: null });
      this.#streams = this.#streams.with(ending, `s${ending}.${this.#next++}`);
      this.counts.ends++;
    }
    return { operations, emissions };
  }

  #text(): string {
    const random = this.#random;
    const text = `${this.#next++}`;
    return random.chance(0.8)
      ? text + random.pick(['x', 'ü']).repeat(random.below((this.#bounds.ringRecords ?? 0) * 40))
      : text;
  }

  async #commit(store: LmdbStore): Promise<void> {
    let filled: Filled = { operations: [], emissions: [] };
    await store.transact(async (tx) => {
      filled = this.#fill(tx);
    });
    if (filled.operations.length + filled.emissions.length > 0)
      this.#model.commit([], filled.operations, filled.emissions);
    this.counts.commits++;
  }

  /** Transactions of several stores at once that conflict, or change one counter. */
  async #commitMany(): Promise<void> {
    const before = Number(this.#model.get('q', 'n') ?? 0);
    const many = 2 + this.#random.below(8);
    await Promise.all(
      Array.from({ length: many }, async (_, i) => {
        const { store } = this.#views[i % this.#views.length] as View;
        await store.transact(async (tx) => {
          if (i % 3 === 0) tx.put('q', 'n', String(Number((await tx.get('q', 'n')) ?? 0) + 1));
          else tx.update('q', 'n', (current) => String(Number(current ?? 0) + 1));
          tx.emit('many', (seq) => `{"seq":${seq}}`);
        });
      }),
    );
    this.counts.commits += many;
    const render = (seq: number): string => `{"seq":${seq}}`;
    this.#model.commit(
      [],
      [{ partition: 'q', key: 'n', change: () => String(before + many) }],
      Array.from({ length: many }, () => ({ stream: 'many', render })),
    );
  }

  async #commitTooLarge(store: LmdbStore): Promise<void> {
    const most = ((this.#bounds.ringRecords ?? 0) * 1_992) / 4;
    const failure = await store
      .transact(async (tx) => (tx.put('p', 'a', 'lost'), tx.put('p', 'b', 'x'.repeat(most))))
      .catch((error: unknown) => error);
    if ((failure as { code?: string }).code !== 'payload_too_large')
      throw new Error(`too large, but ${String(failure)}`);
    this.counts.tooLarge++;
  }

  async #trim(store: LmdbStore): Promise<void> {
    const stream = this.#random.pick([...this.#streams, 'many']);
    const seq = this.#random.below(this.#model.lastSeq(stream) + 2);
    await store.trimEvents(stream, seq);
    this.counts.trims++;
    this.#trimmed.set(stream, Math.max(seq, this.#trimmed.get(stream) ?? 0));
    const [last, oldest] = [this.#model.lastSeq(stream), await store.oldestSeq(stream)];
    if (oldest <= Math.min(seq, last) - (this.#bounds.chunkEvents ?? 0))
      throw new Error(`${stream} begins at ${oldest} after it was trimmed to ${seq} of ${last}`);
  }

  async #checkpoint(store: LmdbStore): Promise<void> {
    await store.checkpoint();
    this.counts.checkpoints++;
  }

  async #reopen(at: number): Promise<void> {
    const { store } = this.#views[at] as View;
    await store.close();
    this.#views[at] = await this.#open(this.#path);
    this.counts.reopenings++;
  }

  async #compact(): Promise<void> {
    await Promise.all(this.#views.map(({ store }) => store.close()));
    const { outcome } = await compactStore(this.#path, { onlyWhenDue: false, minFreeBytes: 0 });
    if (outcome !== 'compacted') throw new Error(`a compaction ended as ${outcome}`);
    for (const at of this.#views.keys()) this.#views[at] = await this.#open(this.#path);
    this.counts.compactions++;
  }

  /** Copies the store while it is open, and compares the copy. */
  async #compareCopy(): Promise<void> {
    const copy = `${this.#path}-copy`;
    mkdirSync(copy);
    await copyStore(this.#path, copy, this.#bounds);
    await inspectStore(copy);
    const epoch = await renewEpoch(copy, undefined, this.#bounds);
    const view = await this.#open(copy);
    if (view.store.epoch !== epoch || epoch === this.#views[0]?.store.epoch)
      throw new Error(`a copy has the epoch ${view.store.epoch}`);
    await this.#compareAll(view);
    await view.store.close();
    rmSync(copy, { recursive: true });
    this.counts.copies++;
  }

  /** Compares one range, one value, one cached value, the partitions and one page of events. */
  async #compareSome({ store }: View): Promise<void> {
    const random = this.#random;
    const [partition, key] = [random.pick(PARTITIONS), random.pick(KEYS)];
    const after = random.chance(0.5) ? { after: random.pick(KEYS) } : {};
    const limit = random.chance(0.5) ? { limit: random.below(4) } : {};
    const options: RangeOptions = { prefix: random.pick(PREFIXES), reverse: random.chance(0.5), ...after, ...limit };
    equal(
      await store.range(partition, options),
      this.#model.range(partition, options),
      `range of ${partition}, ${JSON.stringify(options)}`,
    );
    equal(await store.get(partition, key), this.#model.get(partition, key), `${partition} ${key}`);
    const cached = await store.cached(`list ${partition}`, [partition], async () =>
      JSON.stringify(await store.range(partition)),
    );
    equal(cached, JSON.stringify(this.#model.range(partition, {})), `cached ${partition}`);
    const found = await store.partitions('p', limit);
    const expected = this.#model.partitions('p').slice(0, limit.limit);
    // They may include one that has just lost its last record.
    if (
      found.some((name) => !PARTITIONS.includes(name)) ||
      (limit.limit === undefined && expected.some((name) => !found.includes(name)))
    )
      throw new Error(`partitions ${found.join()} are not ${expected.join()}`);
    const stream = random.pick([...this.#streams, 'many']);
    await this.#compareEvents(
      store,
      stream,
      random.below(this.#model.lastSeq(stream) + 2),
      1 + random.below(5),
      random.pick([1, 500, Infinity]),
    );
  }

  /** Compares all records, and all events that are kept. */
  async #compareAll(view: View): Promise<void> {
    const { store } = view;
    for (const partition of PARTITIONS)
      equal(await store.range(partition), this.#model.range(partition, {}), `partition ${partition}`);
    for (const stream of [...this.#streams, 'many']) {
      const last = this.#model.lastSeq(stream);
      equal(await store.lastSeq(stream), last, `last of ${stream}`);
      const oldest = await store.oldestSeq(stream);
      if (oldest > Math.max(1, Math.min(last, (this.#trimmed.get(stream) ?? 0) + 1)))
        throw new Error(`${stream} begins at ${oldest}, trimmed to ${this.#trimmed.get(stream)} of ${last}`);
      for (let since = oldest - 1; since < last;) since = await this.#compareEvents(store, stream, since, 7, Infinity);
      const received = view.received.get(stream) ?? 0;
      if (received !== last) throw new Error(`the follower got ${stream} up to ${received} of ${last}`);
    }
    for (const stream of view.ended) if (this.#streams.includes(stream)) throw new Error(`${stream} has not ended`);
  }

  /** Compares one page of events; returns the position of its last one. */
  async #compareEvents(
    store: LmdbStore,
    stream: string,
    since: number,
    limit: number,
    maxChars: number,
  ): Promise<number> {
    const found = await store.events(stream, since, limit, maxChars);
    const first = Math.max(since + 1, found[0]?.seq ?? 0);
    if (first > since + 1 && first > (this.#trimmed.get(stream) ?? 0) + 1)
      throw new Error(`${stream} has ${first} after ${since}`);
    equal(
      found,
      this.#model.events(stream, first - 1, limit, maxChars),
      `events of ${stream} after ${since}, ${limit}, ${maxChars}`,
    );
    return found.at(-1)?.seq ?? Infinity;
  }
}

function equal(found: unknown, expected: unknown, name: string): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${name}: ${short(a)} is not ${short(b)}`);
}

function short(text: string | undefined): string {
  if (text === undefined || text.length < 300) return String(text);
  return `${text.slice(0, 300)}… (${text.length} characters)`;
}
